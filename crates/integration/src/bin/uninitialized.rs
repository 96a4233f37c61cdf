//! A program without `brigade::init()`: it prints the resulting error. If its argument is a worker
//! program, it needs no `init` and works.

#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "a program; the error is its output")]
#![expect(clippy::expect_used, reason = "the test that runs this program notices its panic")]

use std::process::{Command, ExitCode};

use brigade::Pool;
use brigade_testkit::outcome;

fn main() -> ExitCode {
    let builder = Pool::builder().workers(1);
    let (builder, server) = match std::env::args().nth(1) {
        Some(server) => (builder.worker_command(&Command::new(server)), true),
        None => (builder, false),
    };
    match builder.build() {
        Ok(pool) if server => {
            let handle = pool.submit::<_, u64, u64, _>("double", 21).expect("a task");
            ExitCode::from(u8::from(outcome(handle).expect("its result") != 42))
        }
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
