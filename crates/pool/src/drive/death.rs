//! The last report on a worker: which task ran when its process died, and how it died.

use std::time::Duration;

use brigade_sys::clock;
use brigade_sys::process::{Exit, Process};
use brigade_wire::WorkerId;
use brigade_wire::slots::{SlotState, SlotTable, slot_tag};
use tracing::{Level, debug, info, warn};

use super::outcome::{DeathReport, Facts};
use super::reaper::Watched;
use super::shared::Shared;
use crate::machine::{Event, StartFailure};

/// Tells the machine, once everything that the worker had written is handled.
pub(super) fn report(shared: &Shared, watched: &Watched) {
    let (worker, slots) = (watched.worker, &watched.slots);
    let pid = watched.process.pid();
    let (exit, stderr_tail, ran) = if let Some(death) = watched.death.get() {
        (death.exit, death.last_words.clone(), death.ran.clone())
    } else {
        // The link ended by itself although we hold its other end; the process may still live.
        let exit = end_process(shared, &watched.process);
        let (last_words, _) = shared.console.last_words(&watched.output);
        (exit, last_words, None)
    };
    let ran = ran.unwrap_or_else(|| Ran::now(shared, worker, slots));
    let expected = matches!(exit, Exit::Code(0) | Exit::Unknown) && ran.slots.is_empty();
    if expected {
        let tell = move |pool: &str| debug!(pool, %worker, pid, %exit, "worker exited");
        shared.console.note(Level::DEBUG, tell);
    } else if !watched.life.is_left_behind() {
        let ran = ran.slots.len();
        let tell = move |pool: &str| info!(pool, %worker, pid, %exit, ran, "worker died");
        shared.console.note(Level::INFO, tell);
    }
    ran.bury(shared, worker, (pid, exit, stderr_tail));
}

/// The end of a worker whose attendant has panicked: it is killed, and its tasks are not lost.
pub(super) fn abandon(shared: &Shared, worker: WorkerId) {
    let Some((life, slots)) = shared.post_of(worker) else { return };
    let pid = life.pid();
    shared.console.note(Level::WARN, move |pool| {
        warn!(pool, %worker, pid, "worker killed, its attendant has panicked");
    });
    // The reaper, or dropping the process, does the rest.
    shared.kill_worker(worker, &life, false);
    let Some(slots) = slots else {
        let reason = format!("{worker} could not be started: its attendant thread has panicked");
        let failure = StartFailure { permanent: false, reason: reason.into() };
        return shared.bury(worker, Event::StartFailed { worker, failure }, Facts::Nothing);
    };
    let pid = life.pid().unwrap_or(0);
    Ran::now(shared, worker, &slots).bury(shared, worker, (pid, Exit::Signal(9), String::new()));
}

/// What a worker runs, as far as its table says.
#[derive(Debug, Clone, Default)]
pub(super) struct Ran {
    /// Which slots hold a task that may have begun and is not answered. Honest workers run one at a time; where the table
    /// was written over, no task can be said not to have begun, and none runs twice without being asked to.
    slots: Vec<u16>,
    elapsed: Option<Duration>,
    /// How long the section may last that it is in.
    section_limit: Duration,
    /// The pool killed it, as it broke the protocol.
    broke_protocol: bool,
}

impl Ran {
    pub(super) fn now(shared: &Shared, worker: WorkerId, slots: &SlotTable) -> Self {
        let section_limit = slots.section().map_or(Duration::ZERO, |section| section.limit);
        let mut ran = Self { section_limit, ..Self::default() };
        let core = shared.lock();
        ran.broke_protocol = core.machine.has_broken_the_protocol(worker);
        let is_believed =
            core.post(worker).and_then(|post| post.line.as_ref()).is_none_or(|line| !line.broken);
        for (link_slot, task, attempt) in core.machine.occupants(worker) {
            if slots.may_have_begun(link_slot, slot_tag(task.id, attempt)) {
                let begun = if is_believed { slots.begun_items(link_slot) } else { u64::MAX };
                let cell = core.machine.task(task.key);
                let died_in_an_item =
                    cell.and_then(|cell| cell.with_chunk_progress(|chunk| chunk.lost_at(begun)));
                // A chunk that has come to nothing yet goes back as a task does that has not begun.
                if died_in_an_item.unwrap_or(true) {
                    ran.slots.push(link_slot);
                }
            }
            if let SlotState::Running { since } = slots.state(link_slot) {
                ran.elapsed = Some(clock::now().saturating_since(since));
            }
        }
        ran
    }

    fn bury(
        self,
        shared: &Shared,
        worker: WorkerId,
        (pid, exit, stderr_tail): (u32, Exit, String),
    ) {
        let Self { slots: ran, elapsed, section_limit, broke_protocol } = self;
        let report = DeathReport { pid, exit, stderr_tail, elapsed, section_limit, broke_protocol };
        shared.bury(worker, Event::Died { worker, ran }, Facts::Death(Box::new(report)));
    }
}

fn end_process(shared: &Shared, process: &Process) -> Exit {
    let ended =
        process.signal_group(brigade_sys::process::Signal::Kill).and_then(|()| process.reap());
    ended.unwrap_or_else(|error| {
        let pid = process.pid();
        shared
            .console
            .note(Level::WARN, move |pool| warn!(pool, pid, %error, "failed to end a worker"));
        Exit::Unknown
    })
}
