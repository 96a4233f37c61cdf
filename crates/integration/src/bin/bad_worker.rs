//! A worker that fails during its start, in the way given by its argument.
//!
//! Each run appends a line to the file named by `BAD_WORKER_RUNS`, so that a test can count the
//! runs.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "the test that runs this program notices its panic")]

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

use brigade_integration::Answering;
use brigade_sys::control::{ControlSocket, Received};
use brigade_sys::descriptors;
use brigade_testkit::{faults, pause};

fn main() {
    if let Some(runs) = std::env::var_os("BAD_WORKER_RUNS") {
        let mut file =
            OpenOptions::new().create(true).append(true).open(runs).expect("the file of runs");
        writeln!(file, "{}", std::process::id()).expect("the file of runs");
    }
    let mode = std::env::args().nth(1).expect("a failure mode");
    match mode.as_str() {
        "silent" => hang(),
        "exits" => {
            let _ = writeln!(std::io::stderr(), "bad_worker: no license found");
            std::process::exit(3)
        }
        "killed" => faults::kills_itself(()),
        "closes" => {
            drop(descriptors::take_stdin());
            hang()
        }
        "garbage" => {
            let control = control();
            for length in [1, 100, 5_000] {
                control.send(&vec![0xFF; length], &[]).expect("the host listens");
            }
            hang()
        }
        mode => {
            let control = control();
            let answering = Answering::parse(mode).expect("a known failure mode");
            control
                .send(&answering.answer(&hello(&control), identity()), &[])
                .expect("the host listens");
            hang()
        }
    }
}

fn control() -> ControlSocket {
    ControlSocket::from_fd(descriptors::take_stdin().expect("the control socket"))
}

fn hello(control: &ControlSocket) -> Vec<u8> {
    match control.receive(None, None).expect("the host's hello") {
        Received::Packet { bytes, .. } => bytes,
        other => panic!("expected the host's hello, got {other:?}"),
    }
}

/// Returns the identity of the host's executable, as given by the test. A different one would be
/// noticed before any other defect.
fn identity() -> [u8; 32] {
    let text = std::env::var("BAD_WORKER_IDENTITY").expect("the identity to claim");
    let bytes: Vec<u8> = text.split(',').map(|byte| byte.parse().expect("a byte")).collect();
    bytes.try_into().expect("32 bytes")
}

/// Hangs until the host kills it, for a minute at most.
fn hang() -> ! {
    pause(Duration::from_secs(60));
    std::process::exit(0)
}
