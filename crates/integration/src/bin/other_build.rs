//! A proper worker, but of another program than the test that starts it.

#![forbid(unsafe_code)]

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
