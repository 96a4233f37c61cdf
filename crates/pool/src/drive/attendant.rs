//! The host's thread for one worker: handshake, then reading, then the report of its death.

use std::sync::{Arc, OnceLock};

use brigade_sys::control::ControlSocket;
use brigade_sys::process::Process;
use brigade_wire::link::{LinkError, LinkReceiver, ipc};
use brigade_wire::{Finished, FromWorker, WorkerId};
use tracing::{Level, debug, warn};

use super::bootstrap::{self, Link, Ready};
use super::console::Output;
use super::death;
use super::outcome::{Facts, answer, finish_chunk, take_item};
use super::post::{Life, Line, Wire};
use super::reaper::Watched;
use super::shared::Shared;
use crate::machine::{Event, StartFailure};

/// A process that was just started.
pub(super) struct Newborn {
    pub(super) worker: WorkerId,
    pub(super) process: Arc<Process>,
    pub(super) life: Arc<Life>,
    pub(super) control: ControlSocket,
    pub(super) output: Output,
}

/// Attends a worker from its start to its end.
pub(super) fn run(shared: &Shared, newborn: Newborn) {
    let worker = newborn.worker;
    let pid = newborn.process.pid();
    match bootstrap::run(shared, &newborn) {
        Ok(ready) => {
            shared
                .console
                .note(Level::DEBUG, move |pool| debug!(pool, %worker, pid, "worker ready"));
            attend(shared, newborn, ready);
        }
        Err(failure) => {
            let cause = failure.reason.clone();
            shared.console.note(
                Level::WARN,
                move |pool| warn!(pool, %worker, pid, cause, "worker failed to start"),
            );
            let failure =
                StartFailure { permanent: failure.permanent, reason: failure.reason.into() };
            shared.bury(worker, Event::StartFailed { worker, failure }, Facts::Nothing);
        }
    }
}

fn attend(shared: &Shared, newborn: Newborn, ready: Ready) {
    let Newborn { worker, process, life, control, output } = newborn;
    let Ready { link, slots, results, ringers } = ready;
    let (wire, ipc) = match link {
        Link::Ring(end) => (Wire::Ring(end), None),
        Link::Ipc(ipc::HostEnd { sender, receiver, poison }) => {
            (Wire::Ipc(sender), Some((receiver, poison)))
        }
    };
    let (receiver, end_mark) = ipc.unzip();
    let death = OnceLock::new();
    let line = Line {
        wire,
        slots: Arc::clone(&slots),
        results,
        _ringers: ringers,
        unannounced: 0,
        broken: false,
    };
    let watched = Watched { worker, process, life, output, slots, end_mark, death, control };
    let watched = Arc::new(watched);
    shared.open_line(worker, line);
    shared.reaper.watch(Arc::clone(&watched));
    shared.step(Event::Ready { worker }, Facts::Nothing);
    // Answers through shared memory are collected by callers and the collector thread; this thread's work is done.
    if let Some(mut receiver) = receiver {
        read_to_the_end(shared, worker, &mut receiver);
        death::report(shared, &watched);
    }
}

/// Handles everything that the worker writes, up to the end mark that follows its death. Behind what made no sense nothing
/// counts any more.
fn read_to_the_end(shared: &Shared, worker: WorkerId, receiver: &mut dyn LinkReceiver) {
    let mut broken = false;
    loop {
        let problem = match receiver.receive() {
            Ok(_) if broken => continue,
            Ok(message) => hear(shared, worker, message).err(),
            Err(LinkError::Closed) => return,
            Err(error @ LinkError::Io(_)) => {
                // It would come again and again. The report of the death, which is next, ends the process.
                return shared.misbehaved(worker, &error.to_string());
            }
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = problem.filter(|_| !broken) {
            broken = true;
            shared.misbehaved(worker, &problem);
        }
    }
}

/// Handles a message, or says why it makes no sense.
fn hear(shared: &Shared, worker: WorkerId, message: &[u8]) -> Result<(), String> {
    let (event, facts) = match FromWorker::decode(message).map_err(|error| error.to_string())? {
        FromWorker::Item(item) => {
            return shared.with_due(worker, |due| take_item(due, item, None));
        }
        FromWorker::Finished(finished) => {
            shared.with_due(worker, |due| finish_chunk(due, &finished))?;
            let facts = Facts::Answer(answer(finished.outcome, None)?);
            let Finished { task, attempt, run_time, worn, .. } = finished;
            (Event::Finished { worker, task, attempt, run_time, worn }, facts)
        }
        FromWorker::Skipped { task, attempt, .. } => {
            (Event::Skipped { worker, task, attempt }, Facts::Nothing)
        }
    };
    shared.step(event, facts);
    shared.step(Event::Balance, Facts::Nothing);
    Ok(())
}
