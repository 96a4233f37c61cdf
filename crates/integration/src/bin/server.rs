//! A separate worker program: not the host's executable, yet started by it.
//!
//! Its argument, if any, is the version that it reports.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "the test that runs this program notices its panic")]

use brigade::worker::{self, Server};
use brigade_integration::JOIN;
use brigade_testkit::faults::{aborts, panics_with_string, sleeps};

fn double(number: u64) -> u64 {
    2 * number
}

/// Returns the number of this attempt at its task; the attempts before it have aborted.
fn succeeds_at(attempt: u32) -> u32 {
    let this = worker::attempt().expect("a task runs").get();
    if this < attempt {
        aborts(());
    }
    this
}

fn main() {
    let server = Server::new()
        .task("double", double)
        .task("sleeps", sleeps)
        .task("panics", panics_with_string)
        .task("echo", |bytes: Vec<u8>| bytes)
        .task("slot", |(): ()| worker::slot())
        .task("succeeds_at", succeeds_at)
        .register(&JOIN);
    match std::env::args().nth(1) {
        Some(version) => server.version(version).run(),
        None => server.run(),
    }
    // This process was not started as a worker.
    std::process::exit(2)
}
