//! A correct worker of a different program than the test that starts it.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "the test that runs this program notices its panic")]

use std::fs::OpenOptions;
use std::io::Write;

fn main() {
    if let Some(runs) = std::env::var_os("BAD_WORKER_RUNS") {
        let mut file =
            OpenOptions::new().create(true).append(true).open(runs).expect("the file of runs");
        writeln!(file, "{}", std::process::id()).expect("the file of runs");
    }
    brigade::init();
}
