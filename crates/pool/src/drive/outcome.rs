//! Turns a worker's message, or its death, into the outcome that the handle gets.

use std::sync::Arc;
use std::time::Duration;

use brigade_scheduler::{Event, Failure, KillCause, Returned, TaskEnd};
use brigade_supervisor::{Death, Verdict};
use brigade_sys::arena::ResultView;
use brigade_sys::clock::{self, Monotonic};
use brigade_task::error::Circumstances;
use brigade_wire::segments::{self, Apart};
use brigade_wire::{self as wire, Attempt, Finished, Item, PanicReport, WorkerId};

use super::deaths::interrupted::Interrupted;
use super::deferred::Deferred;
use super::watch::usage::exceeded as exceeded_limit;
use crate::buffers::Reachable;
use crate::cell::{TaskCell, Waiters};
use crate::chunk::{ChunkEnd, RetriedFor, ValueRef};
use crate::emitted::Emitted;
use crate::error::{TaskError, TaskErrorKind};
use crate::payload::{ArenaValue, Outcome, SegmentedValue, Value};
use brigade_task::backend::Bytes;

/// Data that belongs to an event and that the scheduler does not need to know.
pub(super) enum EventData {
    Nothing,
    /// A worker's outcome of a task.
    Outcome(WorkerOutcome, RunReport),
    /// The report of a worker's death.
    Death(Box<DeathReport>),
}

/// The outcome of a task as a worker sends it. Failures are rare, so they are boxed.
pub(super) type WorkerOutcome = Result<Value, Box<TaskErrorKind>>;

/// A run, as the worker reports it.
#[derive(Clone, Copy)]
pub(super) struct RunReport {
    pub(super) worker: WorkerId,
    pub(super) began: Monotonic,
    pub(super) run_time: Duration,
}

/// The end of a worker's process.
#[derive(Debug, Clone)]
pub(super) struct DeathReport {
    pub(super) worker: WorkerId,
    pub(super) pid: u32,
    pub(super) death: Death,
    /// Without the attempts, which are part of the event.
    pub(super) interrupted: Interrupted,
}

/// Copies a worker's outcome out of the link's buffer. Returns an error if it names an invalid
/// location.
#[inline]
fn decode_outcome(
    outcome: wire::Outcome<'_>,
    due: Option<&TaskCell>,
    reachable: Reachable<'_>,
) -> Result<WorkerOutcome, String> {
    Ok(match decode_value(outcome, due, reachable)? {
        Ok(ValueRef::Inline(bytes)) => Ok(Value::Inline(Bytes::copy(bytes))),
        Ok(other) => Ok(other.into_value()),
        Err(kind) => Err(Box::new(kind)),
    })
}

/// Returns the encoded value, which is still in the link's buffer or in the worker's memory, or the
/// failure.
#[inline]
fn decode_value<'a>(
    outcome: wire::Outcome<'a>,
    due: Option<&TaskCell>,
    reachable: Reachable<'_>,
) -> Result<Result<ValueRef<'a>, TaskErrorKind>, String> {
    Ok(match outcome {
        wire::Outcome::Value(bytes) => Ok(ValueRef::Inline(bytes)),
        wire::Outcome::InArena(location) => {
            Ok(ValueRef::Other(borrow(location, reachable.results)?))
        }
        wire::Outcome::Segmented(segmented) => {
            match decode_segmented(&segmented, due, reachable)? {
                (value, parts) if parts.is_empty() => {
                    Ok(ValueRef::Other(Value::Segmented(Box::new(value))))
                }
                _ => return Err("offered a value that is not a task's".to_owned()),
            }
        }
        wire::Outcome::Panicked(report) => Err(panicked(*report)),
        wire::Outcome::ArgumentCodec(message) | wire::Outcome::ResultCodec(message) => {
            Err(TaskErrorKind::Codec { message })
        }
        wire::Outcome::UnknownFunction(message) => Err(TaskErrorKind::Function { message }),
    })
}

pub(crate) fn panicked(report: PanicReport) -> TaskErrorKind {
    let location = report.location.unwrap_or_else(|| "unknown".to_owned());
    TaskErrorKind::Panicked { message: report.message, location, backtrace: report.backtrace }
}

/// Returns an encoded value with its buffers, and the numbers that are apart from it.
#[cold]
pub(super) fn decode_segmented(
    segmented: &wire::Segmented<'_>,
    due: Option<&TaskCell>,
    reachable: Reachable<'_>,
) -> Result<(SegmentedValue, Vec<Apart>), String> {
    let (encoded, list) = segments::split(segmented.payload).map_err(|error| error.to_string())?;
    let encoded = match segmented.location {
        Some(location) => borrow(location, reachable.results)?,
        None => Value::Inline(Bytes::copy(encoded)),
    };
    let (buffers, parts) = reachable.resolve(list, |key| due?.buffer(key))?;
    Ok((SegmentedValue { encoded, buffers, parts: Vec::new() }, parts))
}

/// Returns the value at a location in the worker's memory.
fn borrow(location: wire::Location, results: Option<&Arc<ResultView>>) -> Result<Value, String> {
    let loan = results.and_then(|results| {
        let (offset, length) = location.in_memory()?;
        results.loan(offset, length)
    });
    Ok(Value::InArena(Box::new(ArenaValue(loan.ok_or("result location out of bounds")?))))
}

/// Records the end of a chunk or of a recorded run, if the task that the worker has to answer next
/// is one.
#[inline]
pub(super) fn finish_chunk(
    worker: WorkerId,
    due: Option<&TaskCell>,
    finished: &Finished<'_>,
) -> Result<ChunkEnd, String> {
    if let Some(record) = due.and_then(|task| task.record()) {
        record.ran(worker, Some(finished.run_time));
        if let Some(emitted) = &record.emitted {
            emitted.end();
        }
    }
    let Some(task) = due.filter(|task| task.is_chunk()) else {
        let retried_for =
            due.map(|task| task.retried_for()).filter(|it| *it != RetriedFor::default());
        return Ok(retried_for.map_or(ChunkEnd::Complete, ChunkEnd::Retried));
    };
    let has_failed = !matches!(
        finished.outcome,
        wire::Outcome::Value(_) | wire::Outcome::InArena(_) | wire::Outcome::Segmented(_)
    );
    let end = task.with_chunk_progress(|chunk| chunk.finish(finished.run_time, has_failed));
    end.flatten()
        .ok_or_else(|| "finished a chunk without an outcome for any of its items".to_owned())
}

/// Returns the event of a finished task, with its outcome. `end` comes from [`finish_chunk`].
#[expect(
    clippy::inline_always,
    reason = "passing the parts through memory costs a tenth of the host's time for a task"
)]
#[inline(always)]
pub(super) fn finished_event(
    worker: WorkerId,
    finished: Finished<'_>,
    end: ChunkEnd,
    due: Option<&TaskCell>,
    reachable: Reachable<'_>,
) -> Result<(Event<TaskCell>, EventData), String> {
    let outcome = decode_outcome(finished.outcome.clone(), due, reachable)?;
    Ok(ended_event(worker, &finished, end, outcome))
}

/// Returns the event of a task that has ended with this outcome.
#[expect(clippy::inline_always, reason = "see `finished_event`")]
#[inline(always)]
pub(super) fn ended_event(
    worker: WorkerId,
    finished: &Finished<'_>,
    end: ChunkEnd,
    outcome: WorkerOutcome,
) -> (Event<TaskCell>, EventData) {
    let Finished { task, attempt, run_time, began, worn, .. } = *finished;
    let ended = |failure| Event::Finished { worker, task, attempt, run_time, worn, failure };
    let event = match end {
        ChunkEnd::Complete => ended(None),
        ChunkEnd::Retried(wanted) => ended(failure_of(&outcome, wanted)),
        ChunkEnd::Returned { finished, parts, failed } => {
            let returned =
                Returned { worker, task, attempt, run_time, worn, finished, parts, failed };
            Event::Returned(Box::new(returned))
        }
    };
    (event, EventData::Outcome(outcome, RunReport { worker, began, run_time }))
}

/// Returns the failure after which a task may run again. A value is not decoded: only the functions
/// of tasks whose values are a `Result` are retried for errors.
fn failure_of(outcome: &WorkerOutcome, wanted: RetriedFor) -> Option<Failure> {
    match outcome {
        Ok(value) if wanted.errors && value.is_err() => Some(Failure::Error),
        Err(kind) if wanted.panics && matches!(**kind, TaskErrorKind::Panicked { .. }) => {
            Some(Failure::Panic)
        }
        Ok(_) | Err(_) => None,
    }
}

/// Adds the outcome of an item to its chunk, or an item to those that its task has emitted. That is
/// the task that the worker has to answer next.
#[inline]
pub(super) fn take_item(
    due: Option<&TaskCell>,
    item: Item<'_>,
    reachable: Reachable<'_>,
    deferred: &mut Deferred,
) -> Result<(), String> {
    if let Some(task) = due
        && let Some(emitted) = task.emitted()
    {
        return take_emitted(task, emitted, item, reachable, deferred);
    }
    let answer = match item.outcome {
        // By far the most common case; it avoids the room that a failure takes.
        wire::Outcome::Value(result) => Ok(ValueRef::Inline(result)),
        other => decode_value(other, due, reachable)?.map_err(Box::new),
    };
    let taken =
        due.and_then(|task| task.with_chunk_progress(|chunk| chunk.answer(item.index, answer)));
    match taken {
        Some(true) => Ok(()),
        Some(false) | None => Err(format!("answered item {} out of order", item.index)),
    }
}

fn take_emitted(
    task: &TaskCell,
    emitted: &Emitted,
    item: Item<'_>,
    reachable: Reachable<'_>,
    deferred: &mut Deferred,
) -> Result<(), String> {
    let Ok(value) = decode_outcome(item.outcome, Some(task), reachable)? else {
        return Err(format!("emitted item {} that is not a value", item.index));
    };
    let completions = emitted
        .add(item.index, value)
        .map_err(|problem| format!("emitted item {} {problem}", item.index))?;
    let waiters = completions.map(|it| Box::new(Waiters::of_item(task.id, it)));
    deferred.notify(waiters);
    Ok(())
}

/// Returns the outcome of a task from the way it ended.
pub(super) fn outcome_of(
    task: &TaskCell,
    attempt: Attempt,
    end: TaskEnd,
    data: &mut EventData,
    broken: Option<&str>,
) -> Outcome {
    let kind = match (end, &mut *data) {
        (TaskEnd::Finished, _) => return Ok(Value::EMPTY),
        (TaskEnd::Reported, EventData::Outcome(answer, _)) => {
            match std::mem::replace(answer, Ok(Value::EMPTY)) {
                Ok(value) => return Ok(value),
                Err(kind) => *kind,
            }
        }
        (end, EventData::Death(report)) => failure(task, end, Some(report), broken),
        (end, _) => failure(task, end, None, broken),
    };
    let death = if let EventData::Death(report) = data { Some(report) } else { None };
    let broke_protocol = death.as_ref().is_some_and(|it| it.interrupted.broke_protocol);
    // The death may also have ended tasks that had not started.
    let has_run = matches!(end, TaskEnd::Died | TaskEnd::Quarantined | TaskEnd::Killed(_));
    let death = death.filter(|_| has_run);
    let elapsed = death.as_ref().and_then(|report| report.interrupted.elapsed);
    if let (Some(record), Some(report)) = (task.record(), &death) {
        record.ran(report.worker, elapsed);
    }
    let error = TaskError::new(kind).of_task(task.id, attempt, task.label().cloned());
    Err(error.under(Circumstances {
        crash: death.as_ref().and_then(|report| report.death.crash.clone()),
        stack: death.as_ref().and_then(|report| report.death.stack.clone()),
        elapsed,
        broke_protocol,
        quarantined: end == TaskEnd::Quarantined,
        in_the_queue: end == TaskEnd::Expired,
    }))
}

/// Returns the failure of a task that has ended without an answer of its worker.
fn failure(
    task: &TaskCell,
    end: TaskEnd,
    death: Option<&DeathReport>,
    broken: Option<&str>,
) -> TaskErrorKind {
    let limits = task.deadlines().map(|deadlines| deadlines.limits).unwrap_or_default();
    let exceeded = |limit| {
        let elapsed = death.and_then(|report| report.interrupted.elapsed);
        TaskErrorKind::DeadlineExceeded { limit, elapsed: elapsed.unwrap_or(limit).max(limit) }
    };
    match (end, death) {
        (
            TaskEnd::Died | TaskEnd::Quarantined | TaskEnd::Killed(KillCause::Limit),
            Some(&DeathReport { death: Death { verdict: Some(verdict), .. }, pid, .. }),
        ) => match verdict {
            Verdict::Denied { call } => TaskErrorKind::Denied { call, pid },
            Verdict::Exceeded { limit, used } => TaskErrorKind::LimitExceeded { limit, used },
        },
        (TaskEnd::Killed(KillCause::Limit), Some(report)) => {
            exceeded_limit(limits, report.interrupted.usage)
        }
        (
            TaskEnd::Died | TaskEnd::Quarantined | TaskEnd::Killed(KillCause::Protocol),
            Some(report),
        ) => {
            let Death { exit, stderr_tail, .. } = report.death.clone();
            TaskErrorKind::WorkerDied { pid: report.pid, exit, stderr_tail }
        }
        (TaskEnd::Killed(KillCause::Deadline), _) => exceeded(limits.hard.unwrap_or_default()),
        (TaskEnd::Killed(KillCause::Section), Some(report)) => {
            exceeded(report.interrupted.section_limit)
        }
        (TaskEnd::Killed(_), _) => TaskErrorKind::Killed,
        (TaskEnd::Expired, _) => {
            let limit = limits.queue.unwrap_or_default();
            let waited = task.deadlines().map(|it| clock::now().saturating_since(it.submitted));
            TaskErrorKind::DeadlineExceeded { limit, elapsed: waited.unwrap_or(limit) }
        }
        (TaskEnd::Cancelled, _) => TaskErrorKind::Cancelled,
        (TaskEnd::Broken, _) => {
            TaskErrorKind::PoolBroken { reason: broken.unwrap_or("unknown").to_owned() }
        }
        (TaskEnd::Closed, _) => TaskErrorKind::PoolClosed,
        (TaskEnd::Reported | TaskEnd::Finished | TaskEnd::Died | TaskEnd::Quarantined, _) => {
            // The scheduler ends a task this way only while it handles the event that carries the
            // data.
            debug_assert!(false, "an end without its event data");
            TaskErrorKind::PoolClosed
        }
    }
}
