//! A worker program of its own: not the host's executable, and started by it all the same.
//!
//! Its argument is the version that it claims to be, if any.

#![forbid(unsafe_code)]

use brigade::worker::{self, Server};
use brigade_testkit::faults::{aborts, panics_with_string, sleeps};

fn double(number: u64) -> u64 {
    2 * number
}

/// Which attempt at its task this is, once the attempts before it have aborted.
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
        .task("succeeds_at", succeeds_at);
    match std::env::args().nth(1) {
        Some(version) => server.version(version).run(),
        None => server.run(),
    }
    // Not started as a worker.
    std::process::exit(2)
}
