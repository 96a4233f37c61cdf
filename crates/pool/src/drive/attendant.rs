//! The host's thread for one worker: handshake, then reading, then the report of its death.

use std::sync::{Arc, OnceLock};

use brigade_sys::clock;
use brigade_sys::control::ControlSocket;
use brigade_sys::process::{Exit, Process};
use brigade_wire::link::{LinkError, LinkReceiver};
use brigade_wire::slots::{SlotState, SlotTable};
use brigade_wire::{FromWorker, WorkerId};
use tracing::{debug, info, warn};

use super::bootstrap::{self, Ready};
use super::console::StderrPipe;
use super::outcome::{DeathReport, Facts, answer};
use super::post::{Life, Line};
use super::reaper::Watched;
use super::shared::Shared;
use crate::machine::{Event, StartFailure};

/// A process that was just started.
pub(super) struct Newborn {
    pub(super) worker: WorkerId,
    pub(super) process: Arc<Process>,
    pub(super) life: Arc<Life>,
    pub(super) control: ControlSocket,
    pub(super) stderr: Arc<StderrPipe>,
}

/// Attends a worker from its start to its end.
pub(super) fn run(shared: &Shared, newborn: Newborn) {
    let worker = newborn.worker;
    let pool = shared.config.name.as_str();
    match bootstrap::run(shared, &newborn) {
        Ok(ready) => {
            debug!(pool, %worker, pid = newborn.process.pid(), "worker ready");
            attend(shared, newborn, ready);
        }
        Err(failure) => {
            warn!(pool, %worker, pid = newborn.process.pid(), cause = %failure.reason, "worker failed to start");
            let failure =
                StartFailure { permanent: failure.permanent, reason: failure.reason.into() };
            shared.bury(worker, Event::StartFailed { worker, failure }, Facts::Nothing);
        }
    }
}

fn attend(shared: &Shared, newborn: Newborn, ready: Ready) {
    let Newborn { worker, process, control, stderr, .. } = newborn;
    let Ready { sender, mut receiver, end_mark, slots } = ready;
    let watched = Arc::new(Watched { process, stderr, end_mark, death: OnceLock::new() });
    shared.open_line(worker, Line { sender, slots: Arc::clone(&slots) });
    shared.reaper.watch(Arc::clone(&watched));
    shared.step(Event::Ready { worker }, Facts::Nothing);
    read_to_the_end(shared, worker, &mut *receiver);
    report_death(shared, worker, &watched, &slots);
    // The lifeline: closing it earlier would tell the worker that we are gone.
    drop(control);
}

/// Handles everything that the worker writes, up to the end mark that follows its death.
fn read_to_the_end(shared: &Shared, worker: WorkerId, receiver: &mut dyn LinkReceiver) {
    loop {
        let message = match receiver.receive() {
            Ok(message) => message,
            Err(LinkError::Closed) => return,
            Err(error) => {
                misbehaved(shared, worker, &error.to_string());
                continue;
            }
        };
        match FromWorker::decode(message) {
            Ok(FromWorker::Finished(finished)) => {
                let facts = Facts::Answer(answer(finished.outcome));
                let event = Event::Finished {
                    worker,
                    task: finished.task,
                    attempt: finished.attempt,
                    run_time: finished.run_time,
                };
                shared.step(event, facts);
            }
            Ok(FromWorker::Skipped { task, attempt, .. }) => {
                shared.step(Event::Skipped { worker, task, attempt }, Facts::Nothing);
            }
            Err(error) => misbehaved(shared, worker, &error.to_string()),
        }
    }
}

fn misbehaved(shared: &Shared, worker: WorkerId, problem: &str) {
    warn!(pool = shared.config.name, %worker, problem, "worker broke the protocol");
    shared.step(Event::Misbehaved { worker }, Facts::Nothing);
}

fn report_death(shared: &Shared, worker: WorkerId, watched: &Watched, slots: &SlotTable) {
    let pid = watched.process.pid();
    let (exit, stderr_tail) = match watched.death.get() {
        Some(death) => (death.exit, death.last_words.clone()),
        // The link ended by itself although we hold its other end; the process may still live.
        None => (end_process(shared, &watched.process), shared.console.last_words(&watched.stderr)),
    };
    let mut ran = Vec::new();
    let mut elapsed = None;
    for (link_slot, _, _) in shared.lock().machine.occupants(worker) {
        match slots.state(link_slot) {
            SlotState::Running { since } => {
                ran.push(link_slot);
                elapsed = Some(clock::now().saturating_since(since));
            }
            SlotState::Free | SlotState::Queued | SlotState::Revoked => {}
        }
    }
    let expected = exit == Exit::Code(0) && ran.is_empty();
    let pool = shared.config.name.as_str();
    if expected {
        debug!(pool, %worker, pid, %exit, "worker exited");
    } else {
        info!(pool, %worker, pid, %exit, ran = ran.len(), "worker died");
    }
    let facts = Facts::Death(DeathReport { pid, exit, stderr_tail, elapsed });
    shared.bury(worker, Event::Died { worker, ran }, facts);
}

fn end_process(shared: &Shared, process: &Process) -> Exit {
    let ended =
        process.signal_group(brigade_sys::process::Signal::Kill).and_then(|()| process.reap());
    ended.unwrap_or_else(|error| {
        warn!(pool = shared.config.name, pid = process.pid(), %error, "failed to end a worker");
        Exit::Code(-1)
    })
}
