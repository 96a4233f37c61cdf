//! "I run untrusted code, and it must not touch my files or my network."
//!
//! ```sh
//! cargo run -p brigade --features sandbox --example untrusted
//! ```
//!
//! The code is played by functions that try what they must not. Each one ends with an error that
//! says what it tried, and the next one runs in a fresh worker.
//!
//! It prints:
//!
//! ```text
//! compute: 42
//! read a secret: Err(Os { code: 13, kind: PermissionDenied, message: "Permission denied" })
//! call home: forbidden: task 3 tried what its sandbox forbids: the system call `socket` (pid
//!     20092); if the code may do that, allow it with a method of `Sandbox`
//! fill the memory: too much: task 4 exceeded its limit of 256 MiB of memory (used 256 MiB of
//!     memory)
//! burn the processor: too much: task 5 exceeded its limit of 1.000s of processor time (used
//!     1.001s of processor time)
//! ```

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it prints its results")]

use std::error::Error;
use std::net::TcpStream;
use std::time::Duration;

use brigade::{Limits, Pool, Sandbox};

/// Runs the code of a user.
fn run(code: String) -> String {
    match code.as_str() {
        "read a secret" => format!("{:?}", std::fs::read_to_string("/etc/passwd")),
        "call home" => format!("{:?}", TcpStream::connect("127.0.0.1:80")),
        "fill the memory" => format!("{} bytes", vec![1_u8; 2 << 30].len()),
        "burn the processor" => loop {
            std::hint::spin_loop();
        },
        _ => "42".to_owned(),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    brigade::init();
    let pool = Pool::builder()
        .workers(1)
        .sandbox(Sandbox::strict())
        .limits(Limits::new().memory(256 << 20).cpu_time(Duration::from_secs(1)))
        .deadline(Duration::from_secs(10))
        .build()?; // an error names what this kernel cannot enforce
    let codes = ["compute", "read a secret", "call home", "fill the memory", "burn the processor"];
    for code in codes {
        match pool.submit(run, code.to_owned())?.wait() {
            Ok(value) => println!("{code}: {value}"),
            Err(error) if error.is_denied() => println!("{code}: forbidden: {error}"),
            Err(error) if error.is_limit() => println!("{code}: too much: {error}"),
            Err(error) => println!("{code}: {error}"),
        }
    }
    Ok(())
}
