//! A host that is killed by one of its workers at a chosen step of that worker's start, while the
//! others start normally: `kills_host host STEP FILE`. It is its own worker program. The first
//! worker that creates the file is the one that kills.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "the test that runs this program notices its panic")]

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use brigade::Pool;
use brigade_integration::Answering;
use brigade_sys::control::{ControlSocket, Received};
use brigade_sys::descriptors;
use brigade_sys::executable::build_identity;
use brigade_testkit::{pause, processes};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["host", step, file] => host(step, file),
        ["worker", step, file, host] => worker(step, Path::new(file), host.parse().expect("a pid")),
        _ => panic!("kills_host host STEP FILE"),
    }
}

fn host(step: &str, file: &str) {
    brigade::init();
    let me = std::process::id();
    let mut command = Command::new(std::env::current_exe().expect("its own program"));
    command.args(["worker", step, file, &me.to_string()]);
    let pool = Pool::builder().workers(3).worker_command(&command).build().expect("a pool");
    let _handles = [(); 3].map(|()| pool.submit(strikes, me));
    // One of the workers kills this process; if none does, it ends by itself.
    pause(Duration::from_secs(30));
}

/// Lets one worker do its half of the handshake by hand up to a step, and then kill the host. The
/// library does the handshake of all others.
fn worker(step: &str, file: &Path, host: u32) {
    if step == "running" || File::create_new(file).is_err() {
        brigade::init();
    }
    let control = ControlSocket::from_fd(descriptors::take_stdin().expect("the control socket"));
    if step != "started" {
        let hello = packet(&control);
        if step != "greeted" {
            // A valid answer over rings: only the ipc link has a server.
            let answer = Answering::Nowhere.answer(&hello, *build_identity().as_bytes());
            control.send(&answer, &[]).expect("the host listens");
            if step != "answered" {
                assert_eq!(step, "replied", "unknown step");
                packet(&control);
            }
        }
    }
    strikes(host);
}

fn packet(control: &ControlSocket) -> Vec<u8> {
    match control.receive(None, None).expect("a packet of the host") {
        Received::Packet { bytes, .. } => bytes,
        // Over ipc the host has noticed that the answer was invalid.
        other => panic!("expected a packet, got {other:?}"),
    }
}

fn strikes(host: u32) {
    processes::hit(host, processes::Signal::KILL);
}
