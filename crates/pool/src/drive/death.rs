//! Reports a worker's death to the scheduler: how the process ended, and which attempts it
//! interrupted.

use std::time::Duration;

use brigade_scheduler::{Event, InterruptedAttempt, StartFailure};
use brigade_sys::clock;
use brigade_sys::process::{Exit, Process};
use brigade_wire::WorkerId;
use brigade_wire::slots::{SlotState, SlotTable, slot_tag};
use tracing::{Level, debug, info, warn};

use super::outcome::{DeathReport, EventData};
use super::shared::Shared;
use super::watched_worker::WatchedWorker;

/// Reports the death, once everything the worker had written has been handled.
pub(super) fn report(shared: &Shared, watched: &WatchedWorker) {
    let (worker, table) = (watched.worker, &watched.table);
    let pid = watched.process.pid();
    let (exit, stderr_tail, interrupted) = if let Some(death) = watched.death.get() {
        (death.exit, death.stderr_tail.clone(), death.interrupted.clone())
    } else {
        // The link was closed although the host holds its other end. The process may still be
        // alive.
        let exit = end_process(shared, &watched.process);
        let (stderr_tail, _) = shared.output.finish_streams(&watched.streams);
        (exit, stderr_tail, None)
    };
    let interrupted = interrupted.unwrap_or_else(|| Interrupted::read(shared, worker, table));
    let expected = matches!(exit, Exit::Code(0) | Exit::Unknown) && interrupted.attempts.is_empty();
    if expected {
        let tell = move |pool: &str| debug!(pool, %worker, pid, %exit, "worker exited");
        shared.output.note(Level::DEBUG, tell);
    } else if !watched.state.is_left_behind() {
        let ran = interrupted.attempts.len();
        let tell = move |pool: &str| info!(pool, %worker, pid, %exit, ran, "worker died");
        shared.output.note(Level::INFO, tell);
    }
    interrupted.report(shared, worker, (pid, exit, stderr_tail));
}

/// Kills a worker whose attendant has panicked, and reports its death so that its tasks are not
/// lost.
pub(super) fn kill_orphaned(shared: &Shared, worker: WorkerId) {
    let Some((state, table)) = shared.process_of(worker) else { return };
    let pid = state.pid();
    shared.output.note(Level::WARN, move |pool| {
        warn!(pool, %worker, pid, "worker killed because its attendant panicked");
    });
    // The reaper does the rest, or the drop of the process.
    shared.kill_worker(worker, &state, false);
    let Some(table) = table else {
        let reason = format!("{worker} could not be started: its attendant thread panicked");
        let failure = StartFailure { permanent: false, reason: reason.into() };
        return shared.remove_dead(
            worker,
            Event::StartFailed { worker, failure },
            EventData::Nothing,
        );
    };
    let pid = state.pid().unwrap_or(0);
    Interrupted::read(shared, worker, &table).report(
        shared,
        worker,
        (pid, Exit::Signal(9), String::new()),
    );
}

/// The attempts that a worker's death interrupted, according to its table.
#[derive(Debug, Clone, Default)]
pub(super) struct Interrupted {
    /// Attempts that may have started and have no outcome. A correct worker runs one task at a
    /// time. If it has overwritten its table, all its tasks count as started, so that none is run
    /// twice without permission.
    attempts: Vec<InterruptedAttempt>,
    elapsed: Option<Duration>,
    /// Time limit of the section that the task was in.
    section_limit: Duration,
    /// The pool killed the worker because it broke the protocol.
    broke_protocol: bool,
}

impl Interrupted {
    pub(super) fn read(shared: &Shared, worker: WorkerId, table: &SlotTable) -> Self {
        let section_limit = table.section().map_or(Duration::ZERO, |section| section.limit);
        let mut interrupted = Self { section_limit, ..Self::default() };
        let core = shared.lock();
        interrupted.broke_protocol = core.scheduler.has_broken_the_protocol(worker);
        let is_believed = core.connection(worker).is_none_or(|connection| !connection.broken);
        for (ring_index, task, attempt) in core.scheduler.occupants(worker) {
            if table.may_have_begun(ring_index, slot_tag(task.id, attempt)) {
                let begun = if is_believed { table.begun_items(ring_index) } else { u64::MAX };
                let cell = core.scheduler.task(task.key);
                let chunk = cell.and_then(|cell| {
                    cell.with_chunk_progress(|chunk| chunk.interrupted(ring_index, begun))
                });
                let task = InterruptedAttempt { ring_index, finished: 0, in_item: true, parts: 1 };
                interrupted.attempts.extend(chunk.unwrap_or(Some(task)));
            }
            if let SlotState::Running { since } = table.state(ring_index) {
                interrupted.elapsed = Some(clock::now().saturating_since(since));
            }
        }
        interrupted
    }

    fn report(
        self,
        shared: &Shared,
        worker: WorkerId,
        (pid, exit, stderr_tail): (u32, Exit, String),
    ) {
        let Self { attempts, elapsed, section_limit, broke_protocol } = self;
        let report = DeathReport { pid, exit, stderr_tail, elapsed, section_limit, broke_protocol };
        shared.remove_dead(
            worker,
            Event::Died { worker, interrupted: attempts },
            EventData::Death(Box::new(report)),
        );
    }
}

fn end_process(shared: &Shared, process: &Process) -> Exit {
    let ended =
        process.signal_group(brigade_sys::process::Signal::Kill).and_then(|()| process.reap());
    ended.unwrap_or_else(|error| {
        let pid = process.pid();
        shared
            .output
            .note(Level::WARN, move |pool| warn!(pool, pid, %error, "failed to kill a worker"));
        Exit::Unknown
    })
}
