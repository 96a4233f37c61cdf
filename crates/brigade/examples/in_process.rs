//! "I want to step through my tasks in a debugger."
//!
//! The workers of this pool are threads of the program, so a breakpoint in `parse` works, and so do
//! coverage and sanitizers: `BRIGADE_IN_PROCESS=1` does the same for any program. It is the only
//! kind of pool on other systems than Linux.
//!
//! ```sh
//! cargo run --example in_process
//! ```
//!
//! It prints:
//!
//! ```text
//! 101
//! 102
//! task 3, item 2 panicked at crates/brigade/examples/in_process.rs:21:64: "three": invalid
//!     digit found in string
//! 104
//! 10485760 bytes arrived
//! the task that hangs: past its deadline
//! and the pool goes on: 2
//! ```

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;
use std::time::Duration;

use brigade::{Pool, TaskErrorKind, worker};

/// Finds the number in a line, or panics.
fn parse(line: String) -> u64 {
    let offset = worker::state::<u64>().copied().unwrap_or_default();
    offset + line.trim().parse::<u64>().unwrap_or_else(|error| panic!("{line:?}: {error}"))
}

fn hang((): ()) {
    loop {
        std::thread::park();
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let pool = Pool::builder().in_process().workers(2).initializer(|x: u64| x, 100).build()?;
    let lines = ["1", " 2 ", "three", "4"].map(str::to_owned);
    for result in pool.map(parse, lines) {
        match result {
            Ok(number) => println!("{number}"),
            Err(error) => println!("{error}"),
        }
    }
    let large = pool.submit(|bytes: Vec<u8>| bytes.len(), vec![7; 10 << 20])?.wait()?;
    println!("{large} bytes arrived");
    let error = pool.task(hang).deadline(Duration::from_millis(100)).submit(())?.wait();
    let is_late =
        matches!(&error, Err(it) if matches!(it.kind(), TaskErrorKind::DeadlineExceeded { .. }));
    println!("the task that hangs: {}", if is_late { "past its deadline" } else { "lost" });
    println!("and the pool goes on: {}", pool.submit(|x: u64| x + 1, 1)?.wait()?);
    Ok(())
}
