//! The last report on a worker: which task ran when its process died, and how it died.

use brigade_sys::clock;
use brigade_sys::process::{Exit, Process};
use brigade_wire::slots::SlotState;
use tracing::{debug, info, warn};

use super::outcome::{DeathReport, Facts};
use super::reaper::Watched;
use super::shared::Shared;
use crate::machine::Event;

/// Tells the machine, once everything that the worker had written is handled.
pub(super) fn report(shared: &Shared, watched: &Watched) {
    let (worker, slots) = (watched.worker, &watched.slots);
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
