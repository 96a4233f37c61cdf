//! Reports a worker's death to the scheduler: how the process ended, and which attempts it
//! interrupted.

use std::sync::Arc;
use std::time::Duration;

use brigade_scheduler::{Event, InterruptedAttempt, KillCause, StartFailure, WorkerDeath};
use brigade_supervisor::threads::cleaner;
use brigade_supervisor::{Death, Verdict, WorkerProcess, note};
use brigade_sys::clock;
use brigade_sys::process::{Exit, last_line};
use brigade_wire::WorkerId;
use brigade_wire::slots::{Revocation, SlotTable, slot_tag};

use crate::cell::TaskCell;
use crate::drive::deaths::interrupted::Interrupted;
use crate::drive::outcome::{DeathReport, EventData};
use crate::drive::shared::{Core, Shared};

/// Reports the death, once everything the worker had written has been handled.
pub(in crate::drive) fn report(shared: &Shared, process: &WorkerProcess) {
    let (worker, pid) = (process.worker(), process.pid().unwrap_or(0));
    let death = process.death().cloned().unwrap_or_else(|| {
        // The link was closed although the host holds its other end. The process may still be
        // alive.
        let exit = process.end().unwrap_or_else(|error| {
            let pid = process.pid();
            note!(shared.supervisor.output, WARN, pid, %error, "cannot kill a worker");
            Exit::Unknown
        });
        Death::new(exit, process.read_rest(&shared.supervisor.output))
    });
    let exit = death.exit;
    let interrupted = shared.lock().worker_slot_mut(worker).and_then(|it| it.interrupted.take());
    let interrupted = interrupted.unwrap_or_else(|| read_interrupted(&shared.lock(), worker));
    let expected = is_orderly(exit) && interrupted.attempts.is_empty();
    if expected {
        note!(shared.supervisor.output, DEBUG, %worker, pid, %exit, "worker exited");
    } else if !process.is_left_behind() {
        let ran = interrupted.attempts.len();
        let crash = death.crash.clone();
        note!(
            shared.supervisor.output, INFO, %worker, pid, %exit, ran,
            crash = crash.as_ref().map(display),
            at = crash.as_ref().and_then(|crash| crash.stack()?.place()), "worker died"
        );
    }
    if let Some(verdict) = death.verdict {
        note_verdict(shared, worker, &interrupted, verdict);
    }
    remove(shared, worker, interrupted, pid, death);
}

/// Reports that the task of a worker went too far.
fn note_verdict(shared: &Shared, worker: WorkerId, interrupted: &Interrupted, verdict: Verdict) {
    let core = shared.lock();
    let begun = |ring_index| interrupted.attempts.iter().any(|it| it.ring_index == ring_index);
    let mut occupants = core.scheduler.occupants(worker).into_iter();
    let task = occupants.find(|(ring_index, ..)| begun(*ring_index)).map(|(_, task, _)| task.id);
    drop(core);
    let task = task.map(|task| task.to_string());
    let output = &shared.supervisor.output;
    match verdict {
        Verdict::Denied { call } => {
            note!(output, WARN, %worker, task, call, "a task made a call that its sandbox forbids");
        }
        Verdict::Exceeded { limit, .. } => {
            note!(output, INFO, %worker, task, %limit, "a task exceeded a limit on a resource");
        }
    }
}

/// Reads the interrupted attempts before the death is observed: an outcome that the worker sends
/// from now on makes no difference.
pub(in crate::drive) fn interrupt(core: &mut Core, worker: WorkerId) {
    let interrupted = read_interrupted(core, worker);
    if let Some(worker_slot) = core.worker_slot_mut(worker) {
        worker_slot.interrupted.get_or_insert(interrupted);
    }
}

/// Revokes the tasks that a worker which is about to end has not begun, and reads which it has.
pub(in crate::drive) fn interrupt_crashed(core: &mut Core, worker: WorkerId) {
    let Some(connection) = core.connection(worker) else { return };
    let revoked: Vec<u16> = core
        .scheduler
        .occupants(worker)
        .into_iter()
        .filter(|(ring_index, task, attempt)| {
            let tag = slot_tag(task.id, *attempt);
            connection.table.revoke(*ring_index, tag) == Revocation::Revoked
        })
        .map(|(ring_index, ..)| ring_index)
        .collect();
    let mut interrupted = read_interrupted(core, worker);
    interrupted.attempts.retain(|attempt| !revoked.contains(&attempt.ring_index));
    if let Some(worker_slot) = core.worker_slot_mut(worker) {
        worker_slot.interrupted = Some(interrupted);
    }
}

/// Kills a worker whose attendant has panicked, and reports its death so that its tasks are not
/// lost.
pub(in crate::drive) fn kill_orphaned(shared: &Shared, process: &Arc<WorkerProcess>) {
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
    let interrupted = read_interrupted(&shared.lock(), worker);
    let death = Death::new(Exit::Signal(9), String::new());
    remove(shared, worker, interrupted, pid.unwrap_or(0), death);
}

fn read_interrupted(core: &Core, worker: WorkerId) -> Interrupted {
    let Some(connection) = core.connection(worker) else { return Interrupted::default() };
    let table: &SlotTable = &connection.table;
    let mut interrupted = Interrupted {
        section_limit: table.section().map_or(Duration::ZERO, |section| section.limit),
        broke_protocol: core.scheduler.has_broken_the_protocol(worker),
        usage: core.worker_slot(worker).and_then(|slot| Some(slot.measured.as_ref()?.usage)),
        ..Interrupted::default()
    };
    for (ring_index, task, attempt) in core.scheduler.occupants(worker) {
        if table.may_have_begun(ring_index, slot_tag(task.id, attempt)) {
            let begun = if connection.broken { u64::MAX } else { table.begun_items(ring_index) };
            let cell = core.scheduler.task(task.key);
            let chunk = cell.and_then(|cell| {
                cell.with_chunk_progress(|chunk| chunk.interrupted(ring_index, begun))
            });
            let task = InterruptedAttempt::of_task(ring_index);
            interrupted.attempts.extend(chunk.unwrap_or(Some(task)));
        }
        if let Some(since) = table.running_since(ring_index) {
            interrupted.elapsed = Some(clock::now().saturating_since(since));
        }
    }
    interrupted
}

/// Returns `true` unless the process has exited as if it had been asked to.
pub(in crate::drive) fn has_died(event: &Event<TaskCell>, data: &EventData) -> bool {
    match (event, data) {
        (Event::Died { death, .. }, EventData::Death(report)) => {
            !(is_orderly(report.death.exit) && death.interrupted.is_empty())
        }
        _ => true,
    }
}

fn is_orderly(exit: Exit) -> bool {
    matches!(exit, Exit::Code(0) | Exit::Unknown)
}

fn remove(shared: &Shared, worker: WorkerId, mut interrupted: Interrupted, pid: u32, death: Death) {
    let attempts = std::mem::take(&mut interrupted.attempts);
    let end = describe(&death).into();
    let cause = death.verdict.map(|verdict| match verdict {
        Verdict::Denied { .. } => KillCause::Denied,
        Verdict::Exceeded { .. } => KillCause::Limit,
    });
    // Looked up when it is handled.
    let gone = false;
    let interrupted_by = WorkerDeath { interrupted: attempts, cause, gone, end };
    let event = Event::Died { worker, death: Box::new(interrupted_by) };
    let data = EventData::Death(Box::new(DeathReport { worker, pid, death, interrupted }));
    shared.remove_dead(worker, event, data);
}

/// Describes the end of a process for the reason of a broken pool.
fn describe(death: &Death) -> String {
    let line = last_line(&death.stderr_tail);
    let line = line.map(|line| format!("; its last line on stderr: {line}"));
    format!("{}{}", death.end(), line.unwrap_or_default())
}
