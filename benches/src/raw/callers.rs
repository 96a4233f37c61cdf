//! Measures calls to two threads that answer through channels of `std`.

use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::callers;
use crate::load::Load;
use crate::report::Report;

/// Each caller has a channel for its answers, and sends all its requests to the same thread. The
/// threads end when all callers have dropped their channels.
pub(super) fn measure(load: &Load, report: &mut Report) {
    let servers: Vec<Sender<Sender<()>>> = (0..load.workers).map(|_| server()).collect();
    callers::measure(load, report, |index| {
        let server = servers[index % servers.len()].clone();
        let (answer, answers) = channel();
        move || {
            server.send(answer.clone())?;
            Ok(answers.recv()?)
        }
    });
}

/// Starts a thread that answers requests, each of which is the sender for its answer.
fn server() -> Sender<Sender<()>> {
    let (sender, requests) = channel::<Sender<()>>();
    thread::spawn(move || {
        for answer in requests {
            // A caller that has gone needs no answer.
            let _ = answer.send(());
        }
    });
    sender
}
