//! The thread that attends one worker, once the handshake is complete. If the link is not a ring,
//! it reads the link and reports the worker's death.

use std::sync::Arc;

use brigade_scheduler::Event;
use brigade_supervisor::{Connected, Supervised, WorkerProcess};
use brigade_sys::clock::now;
use brigade_wire::link::{LinkError, LinkReceiver};
use brigade_wire::{FromWorker, WorkerId};

use crate::drive::deaths::death;

use crate::buffers::{Kept, Reachable};
use crate::drive::observer::{Observer, Started};
use crate::drive::outcome::{EventData, finish_chunk, finished_event, take_item};
use crate::drive::shared::Shared;

/// Attends a worker. Over rings it returns at once, over other links after the worker's death.
pub(in crate::drive) fn run(shared: &Shared, process: &Arc<WorkerProcess>, connected: Connected) {
    let worker = process.worker();
    let Connected { connection, receiver, initializing } = connected;
    let mut core = shared.lock();
    if let Some(worker_slot) = core.worker_slot_mut(worker) {
        worker_slot.connection = Some(connection);
        core.watch_rings();
        let now = now();
        let is_forked = process.is_forked();
        core.observers.worker_ready(now, worker, Started { is_forked, initializing });
    }
    drop(core);
    shared.supervisor.reaper.watch(Arc::clone(process));
    shared.step(Event::Ready { worker }, EventData::Nothing);
    // Outcomes in rings are collected by callers and the collector thread, so this thread has
    // nothing left to do.
    if let Some(mut receiver) = receiver {
        read_to_the_end(shared, worker, &mut *receiver);
        death::report(shared, process);
    }
}

/// Handles all messages of the worker up to the end mark that follows its death. After a malformed
/// message, the rest is ignored.
fn read_to_the_end(shared: &Shared, worker: WorkerId, receiver: &mut dyn LinkReceiver) {
    let mut broken = false;
    loop {
        broken |= shared.lock().connection(worker).is_some_and(|it| it.broken);
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
    // This link comes without shared memory.
    let reachable = Reachable { results: None, kept: &Kept::default(), copies: None };
    let (event, data) = match FromWorker::decode(message).map_err(|error| error.to_string())? {
        FromWorker::Item(item) => {
            return shared.with_core(|core, deferred| {
                take_item(core.scheduler.due(worker), item, reachable, deferred)
            });
        }
        FromWorker::Finished(finished) => {
            let end = shared.with_due(worker, |due| finish_chunk(worker, due, &finished))?;
            finished_event(worker, finished, end, None, reachable)?
        }
        FromWorker::Keeps(_) | FromWorker::Releases(_) => {
            return Err("keeps a shared buffer, of which it has none".to_owned());
        }
        FromWorker::Wants(_) => {
            return Err("asked for an argument that was not kept".to_owned());
        }
        FromWorker::Skipped { task, attempt, .. } => {
            (Event::Skipped { worker, task, attempt }, EventData::Nothing)
        }
    };
    shared.step(event, data);
    shared.step(Event::Balance, EventData::Nothing);
    Ok(())
}
