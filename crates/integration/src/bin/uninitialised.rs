//! A program that forgot `brigade::init()`; it prints the error that it gets for that.

#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "it is a program; the error is its output")]

use std::process::ExitCode;

use brigade::Pool;

fn main() -> ExitCode {
    match Pool::builder().workers(1).build() {
        Ok(pool) => {
            eprintln!("a pool was built: {pool:?}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
