//! Measures plain threads and processes with the same work: the limits of the machine.

use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use brigade_sys::process::self_command;

use super::pools::{busy, closed_loops};
use crate::figures::Outcome;
use crate::rate::Rate;

/// Source of the tasks of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// A counter that all threads share.
    Counter,
    /// A part of its own.
    Part,
}

/// Returns the rate of tasks on as many threads as there are workers.
pub(super) fn tasks(source: Source, threads: u32, grain: Duration, time: Duration) -> Outcome<f64> {
    let guess = f64::from(threads) / grain.as_secs_f64().max(50e-9);
    let rate = Rate::measure(time, guess, |count| {
        let taken = AtomicU32::new(0);
        let begin = Instant::now();
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| match source {
                    Source::Counter => {
                        while taken.fetch_add(1, Ordering::Relaxed) < count {
                            busy(grain);
                        }
                    }
                    Source::Part => (0..count / threads).for_each(|_| busy(grain)),
                });
            }
        });
        Ok(begin.elapsed())
    });
    Ok(rate?.median)
}

/// Returns the rate of calls to threads that answer through channels: each caller has a channel for
/// its answers, and sends all its requests to the same thread.
pub(super) fn calls(servers: u32, callers: u32, time: Duration) -> Outcome<f64> {
    let servers: Vec<Sender<Sender<()>>> = (0..servers).map(|_| server()).collect();
    let (rate, _) = closed_loops(callers, time, |index| {
        let server = servers[index % servers.len()].clone();
        let (answer, answers) = channel();
        move || {
            server.send(answer.clone())?;
            Ok(answers.recv()?)
        }
    })?;
    Ok(rate.median)
}

/// Starts a thread that answers requests until all callers have dropped their channels.
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

/// Returns the time to start that many processes, which end at once, and to wait for them.
pub(super) fn processes(count: u32) -> Outcome<Duration> {
    let begin = Instant::now();
    let start = |_| self_command().arg("exit").stdin(Stdio::null()).spawn();
    let children = (0..count).map(start).collect::<Result<Vec<_>, _>>()?;
    for mut child in children {
        child.wait()?;
    }
    Ok(begin.elapsed())
}
