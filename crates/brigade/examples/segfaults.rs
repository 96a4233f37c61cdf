//! "I use a C library that sometimes segfaults."
//!
//! ```sh
//! cargo run -p brigade --example segfaults
//! ```
//!
//! The library is played by a parser that calls itself for each bracket. One file has ten million
//! of them, so the stack overflows, which ends the process. That file has an error, and the others
//! have results.
//!
//! It prints:
//!
//! ```text
//! good.txt: 2 levels
//! broken.txt: a bracket is missing
//! hostile.txt: task 3, item 2 lost its worker (pid 19967): SIGABRT (signal 6), stack
//!     overflow at address 0x7ffcc08bcfe0, after 32.498ms; its last line on stderr: fatal
//!     runtime error: stack overflow, aborting
//! empty.txt: 0 levels
//! deep.txt: 100 levels
//! 1 worker was replaced
//! ```

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it prints its results")]

use std::error::Error;

use brigade::Pool;

/// Returns how deeply the brackets of a text are nested.
fn depth(text: String) -> Result<usize, String> {
    let (depth, rest) = group(text.as_bytes());
    if rest.is_empty() { Ok(depth) } else { Err("a bracket is missing".to_owned()) }
}

/// Returns the depth of the group at the beginning, and what follows it.
fn group(mut text: &[u8]) -> (usize, &[u8]) {
    let mut deepest = 0;
    while let Some((b'(', rest)) = text.split_first() {
        let (inner, rest) = group(rest);
        deepest = deepest.max(inner + 1);
        text = rest.strip_prefix(b")").unwrap_or(rest);
    }
    (deepest, text)
}

fn main() -> Result<(), Box<dyn Error>> {
    brigade::init();
    let files = [
        ("good.txt", "(()())".to_owned()),
        ("broken.txt", "())".to_owned()),
        ("hostile.txt", "(".repeat(10_000_000)),
        ("empty.txt", String::new()),
        ("deep.txt", "(".repeat(100) + &")".repeat(100)),
    ];
    let pool = Pool::builder().workers(2).build()?;
    let texts = files.iter().map(|(_, text)| text.clone());
    // The results of `map` are in the order of the inputs, so each belongs to its file.
    for ((name, _), result) in files.iter().zip(pool.map(depth, texts)) {
        match result {
            Ok(Ok(depth)) => println!("{name}: {depth} levels"),
            Ok(Err(problem)) => println!("{name}: {problem}"),
            Err(error) => println!("{name}: {error}"),
        }
    }
    println!("{} worker was replaced", pool.worker_restarts());
    Ok(())
}
