//! Reports a worker's death to the scheduler: how the process ended, and which attempts it
//! interrupted.

use std::sync::Arc;
use std::time::Duration;

use brigade_scheduler::{Event, InterruptedAttempt, StartFailure, WorkerDeath};
use brigade_supervisor::threads::cleaner;
use brigade_supervisor::{Death, WorkerProcess, note};
use brigade_sys::clock;
use brigade_sys::process::Exit;
use brigade_sys::process::last_line;
use brigade_wire::slots::{SlotState, SlotTable, slot_tag};
use brigade_wire::{WorkerId, exit_code};

use super::interrupted::Interrupted;
use super::outcome::{DeathReport, EventData};
use super::shared::Shared;

/// Reports the death, once everything the worker had written has been handled.
pub(super) fn report(shared: &Shared, process: &WorkerProcess) {
    let (worker, pid) = (process.worker(), process.pid().unwrap_or(0));
    let death = process.death().cloned().unwrap_or_else(|| {
        // The link was closed although the host holds its other end. The process may still be
        // alive.
        let exit = end_process(shared, process);
        Death { exit, stderr_tail: process.read_rest(&shared.supervisor.output) }
    });
    let exit = death.exit;
    let interrupted = shared.lock().worker_slot_mut(worker).and_then(|it| it.interrupted.take());
    let interrupted = interrupted.unwrap_or_else(|| read_interrupted(shared, worker));
    let expected = is_orderly(exit) && interrupted.attempts.is_empty();
    if expected {
        note!(shared.supervisor.output, DEBUG, %worker, pid, %exit, "worker exited");
    } else if !process.is_left_behind() {
        let ran = interrupted.attempts.len();
        note!(shared.supervisor.output, INFO, %worker, pid, %exit, ran, "worker died");
    }
    remove(shared, worker, interrupted, pid, death);
}

/// Reads the interrupted attempts before the death is observed: an outcome that the worker sends
/// from now on makes no difference.
pub(super) fn interrupt(shared: &Shared, worker: WorkerId) {
    let interrupted = read_interrupted(shared, worker);
    if let Some(worker_slot) = shared.lock().worker_slot_mut(worker) {
        worker_slot.interrupted = Some(interrupted);
    }
}

/// Kills a worker whose attendant has panicked, and reports its death so that its tasks are not
/// lost.
pub(super) fn kill_orphaned(shared: &Shared, process: &Arc<WorkerProcess>) {
    let (worker, pid) = (process.worker(), process.pid());
    let Some(is_ready) = shared.lock().worker_slot(worker).map(|it| it.connection.is_some()) else {
        return;
    };
    note!(
        shared.supervisor.output, WARN, %worker, pid, "worker killed because its attendant panicked"
    );
    // The reaper does the rest, or the drop of the process.
    cleaner::kill(shared, process, false);
    if !is_ready {
        let reason = format!("{worker} cannot be started: its attendant thread panicked");
        let failure = StartFailure { permanent: false, reason: reason.into() };
        let event = Event::StartFailed { worker, failure };
        return shared.remove_dead(worker, event, EventData::Nothing);
    }
    let interrupted = read_interrupted(shared, worker);
    let death = Death { exit: Exit::Signal(9), stderr_tail: String::new() };
    remove(shared, worker, interrupted, pid.unwrap_or(0), death);
}

fn read_interrupted(shared: &Shared, worker: WorkerId) -> Interrupted {
    let core = shared.lock();
    let Some(connection) = core.connection(worker) else { return Interrupted::default() };
    let table: &SlotTable = &connection.table;
    let mut interrupted = Interrupted {
        section_limit: table.section().map_or(Duration::ZERO, |section| section.limit),
        broke_protocol: core.scheduler.has_broken_the_protocol(worker),
        ..Interrupted::default()
    };
    for (ring_index, task, attempt) in core.scheduler.occupants(worker) {
        if table.may_have_begun(ring_index, slot_tag(task.id, attempt)) {
            let begun = if connection.broken { u64::MAX } else { table.begun_items(ring_index) };
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

impl DeathReport {
    /// Returns `true` if the process ended as if it had been asked to exit.
    pub(super) fn exited_in_order(&self) -> bool {
        is_orderly(self.death.exit)
    }
}

fn is_orderly(exit: Exit) -> bool {
    matches!(exit, Exit::Code(0) | Exit::Unknown)
}

fn remove(shared: &Shared, worker: WorkerId, mut interrupted: Interrupted, pid: u32, death: Death) {
    let attempts = std::mem::take(&mut interrupted.attempts);
    let end = describe(&death).into();
    let event = Event::Died { worker, death: Box::new(WorkerDeath { interrupted: attempts, end }) };
    let data = EventData::Death(Box::new(DeathReport { worker, pid, death, interrupted }));
    shared.remove_dead(worker, event, data);
}

/// Describes the end of a process for the reason of a broken pool.
fn describe(death: &Death) -> String {
    let known = exit_code::describe_exit(death.exit).map(|known| format!(", {known}"));
    let line = last_line(&death.stderr_tail);
    let line = line.map(|line| format!("; its last line on stderr: {line}"));
    format!("{}{}{}", death.exit, known.unwrap_or_default(), line.unwrap_or_default())
}

fn end_process(shared: &Shared, process: &WorkerProcess) -> Exit {
    process.end().unwrap_or_else(|error| {
        let pid = process.pid();
        note!(shared.supervisor.output, WARN, pid, %error, "cannot kill a worker");
        Exit::Unknown
    })
}
