//! The thread that attends one worker: it does the handshake. If the link is not a ring, it then
//! reads the link and reports the worker's death.

use std::sync::{Arc, OnceLock};

use brigade_scheduler::{Event, StartFailure};
use brigade_sys::control::ControlSocket;
use brigade_sys::process::Process;
use brigade_wire::link::connect::HostEnd;
use brigade_wire::link::{LinkError, LinkReceiver};
use brigade_wire::{FromWorker, WorkerId};
use tracing::{Level, debug, warn};

use super::bootstrap::{self, HandshakeResult, Link};
use super::death;
use super::outcome::{EventData, finish_chunk, finished_event, take_item};
use super::output::WorkerStreams;
use super::shared::Shared;
use super::watched_worker::WatchedWorker;
use super::worker_slot::{Connection, HostLink, ProcessState};

/// A process that was just started, before its handshake.
pub(super) struct StartedWorker {
    pub(super) worker: WorkerId,
    pub(super) process: Arc<Process>,
    pub(super) state: Arc<ProcessState>,
    pub(super) control: ControlSocket,
    pub(super) streams: WorkerStreams,
}

/// Attends a worker. Over rings it returns after the handshake, over other links after the worker's
/// death.
pub(super) fn run(shared: &Shared, started: StartedWorker) {
    let worker = started.worker;
    let pid = started.process.pid();
    match bootstrap::run(shared, &started) {
        Ok(result) => {
            shared
                .output
                .note(Level::DEBUG, move |pool| debug!(pool, %worker, pid, "worker ready"));
            attend(shared, started, result);
        }
        Err(failure) => {
            let cause = failure.reason.clone();
            shared.output.note(
                Level::WARN,
                move |pool| warn!(pool, %worker, pid, cause, "worker failed to start"),
            );
            let failure =
                StartFailure { permanent: failure.permanent, reason: failure.reason.into() };
            shared.remove_dead(worker, Event::StartFailed { worker, failure }, EventData::Nothing);
        }
    }
}

fn attend(shared: &Shared, started: StartedWorker, result: HandshakeResult) {
    let StartedWorker { worker, process, state, control, streams } = started;
    let HandshakeResult { link, table, results, ringers, lifeline } = result;
    let (link, incoming) = match link {
        Link::Ring(end) => (HostLink::Ring(end), None),
        Link::Connected(HostEnd { sender, receiver, end_mark }) => {
            (HostLink::Connected(sender), Some((receiver, end_mark)))
        }
    };
    let (receiver, end_mark) = incoming.unzip();
    let death = OnceLock::new();
    let connection = Connection {
        link,
        table: Arc::clone(&table),
        results,
        _ringers: ringers,
        unannounced: 0,
        broken: false,
    };
    let watched = WatchedWorker {
        worker,
        process,
        _lifeline: lifeline,
        state,
        streams,
        table,
        end_mark,
        death,
        control,
    };
    let watched = Arc::new(watched);
    shared.open_connection(worker, connection);
    shared.reaper.watch(Arc::clone(&watched));
    shared.step(Event::Ready { worker }, EventData::Nothing);
    // Outcomes in rings are collected by callers and the collector thread, so this thread has
    // nothing left to do.
    if let Some(mut receiver) = receiver {
        read_to_the_end(shared, worker, &mut receiver);
        death::report(shared, &watched);
    }
}

/// Handles all messages of the worker up to the end mark that follows its death. After a malformed
/// message, the rest is ignored.
fn read_to_the_end(shared: &Shared, worker: WorkerId, receiver: &mut dyn LinkReceiver) {
    let mut broken = false;
    loop {
        let problem = match receiver.receive() {
            Ok(_) if broken => continue,
            Ok(message) => handle_message(shared, worker, message).err(),
            Err(LinkError::Closed) => return,
            Err(error @ LinkError::Io(_)) => {
                // The error would repeat forever. The report of the death comes next and ends the
                // process.
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

/// Handles a message. Returns an error if the message breaks the protocol.
fn handle_message(shared: &Shared, worker: WorkerId, message: &[u8]) -> Result<(), String> {
    let (event, data) = match FromWorker::decode(message).map_err(|error| error.to_string())? {
        FromWorker::Item(item) => {
            return shared.with_due(worker, |due| take_item(due, item, None));
        }
        FromWorker::Finished(finished) => {
            let end = shared.with_due(worker, |due| finish_chunk(due, &finished))?;
            finished_event(worker, finished, end, None)?
        }
        FromWorker::Skipped { task, attempt, .. } => {
            (Event::Skipped { worker, task, attempt }, EventData::Nothing)
        }
    };
    shared.step(event, data);
    shared.step(Event::Balance, EventData::Nothing);
    Ok(())
}
