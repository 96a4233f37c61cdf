//! From what a worker reports, or how it died, to what the handle gets.

use std::sync::Arc;
use std::time::Duration;

use brigade_sys::arena::ResultView;
use brigade_sys::clock;
use brigade_sys::process::Exit;
use brigade_wire::{Attempt, Finished, Item, Outcome, PanicReport};

use crate::cell::{RawOutcome, TaskCell};
use crate::chunk::Answered;
use crate::error::{TaskError, TaskErrorKind};
use crate::machine::{End, KillCause};
use crate::payload::{PlacedValue, Value};

/// What the driver knows while an event is handled; the machine only says whom it concerns.
pub(super) enum Facts {
    Nothing,
    /// A worker's answer.
    Answer(Answer),
    /// How a worker died.
    Death(Box<DeathReport>),
}

/// What a worker answered. Few answers are failures, so a failure takes a pointer's room and no more.
pub(super) type Answer = Result<Value, Box<TaskErrorKind>>;

/// How a worker's process ended.
#[derive(Debug, Clone)]
pub(super) struct DeathReport {
    pub(super) pid: u32,
    pub(super) exit: Exit,
    pub(super) stderr_tail: String,
    /// How long the task had been running.
    pub(super) elapsed: Option<Duration>,
    /// How long the section might take that it was in.
    pub(super) section_limit: Duration,
    /// The pool killed it, as it broke the protocol.
    pub(super) broke_protocol: bool,
}

/// Copies a worker's answer out of the link's buffer; an error when it names a place that cannot be.
#[inline]
pub(super) fn answer(
    outcome: Outcome<'_>,
    results: Option<&Arc<ResultView>>,
) -> Result<Answer, String> {
    Ok(match answered(outcome, results)? {
        Ok(Answered::Inline(bytes)) => Ok(Value::Inline(bytes.to_vec())),
        Ok(Answered::Placed(placed)) => Ok(Value::Placed(Box::new(placed))),
        Err(kind) => Err(Box::new(kind)),
    })
}

/// The encoded value, still in the link's buffer or in the worker's memory, or why there is none.
#[inline]
fn answered<'a>(
    outcome: Outcome<'a>,
    results: Option<&Arc<ResultView>>,
) -> Result<Result<Answered<'a>, TaskErrorKind>, String> {
    Ok(match outcome {
        Outcome::Value(bytes) => Ok(Answered::Inline(bytes)),
        Outcome::Placed(place) => {
            let loan = results.and_then(|results| {
                let (offset, length) =
                    (place.offset.try_into().ok()?, place.length.try_into().ok()?);
                results.loan(offset, length)
            });
            Ok(Answered::Placed(PlacedValue(loan.ok_or("a result at a place that cannot be")?)))
        }
        Outcome::Panicked(report) => {
            let PanicReport { message, location, backtrace } = *report;
            let location = location.unwrap_or_else(|| "unknown".to_owned());
            Err(TaskErrorKind::Panicked { message, location, backtrace })
        }
        Outcome::ArgumentCodec(message) | Outcome::ResultCodec(message) => {
            Err(TaskErrorKind::Codec { message })
        }
        Outcome::UnknownFunction(message) => Err(TaskErrorKind::Function { message }),
    })
}

/// Tells a chunk, if that is what the worker has to answer next, that the worker says it has ended.
#[inline]
pub(super) fn finish_chunk(
    due: Option<&Arc<TaskCell>>,
    finished: &Finished<'_>,
) -> Result<(), String> {
    let Some(task) = due.filter(|task| task.is_chunk) else { return Ok(()) };
    let has_failed = !matches!(finished.outcome, Outcome::Value(_) | Outcome::Placed(_));
    let is_right = task.with_chunk_progress(|chunk| chunk.finish(finished.run_time, has_failed));
    if is_right == Some(false) {
        return Err("finished a chunk without an answer to any of its items".to_owned());
    }
    Ok(())
}

/// Gives the answer to an item to its chunk, which is the task that the worker has to answer next.
#[inline]
pub(super) fn take_item(
    due: Option<&Arc<TaskCell>>,
    item: Item<'_>,
    results: Option<&Arc<ResultView>>,
) -> Result<(), String> {
    let answer = match item.outcome {
        // By far the most, and without the room that a failure takes.
        Outcome::Value(result) => Ok(Answered::Inline(result)),
        other => answered(other, results)?.map_err(Box::new),
    };
    let taken =
        due.and_then(|task| task.with_chunk_progress(|chunk| chunk.answer(item.index, answer)));
    match taken {
        Some(true) => Ok(()),
        Some(false) | None => Err(format!("answered item {}, which was not due", item.index)),
    }
}

/// The outcome that a task gets at its end.
pub(super) fn raw_outcome(
    task: &TaskCell,
    attempt: Attempt,
    end: End,
    facts: &mut Facts,
    broken: Option<&str>,
) -> RawOutcome {
    let mut elapsed = None;
    let (mut quarantined, mut waited_too_long) = (false, false);
    let broke_protocol = matches!(&*facts, Facts::Death(report) if report.broke_protocol);
    let kind = match (end, facts) {
        (End::Reported, Facts::Answer(answer)) => {
            match std::mem::replace(answer, Ok(Value::Inline(Vec::new()))) {
                Ok(value) => return Ok(value),
                Err(kind) => *kind,
            }
        }
        (End::Died | End::Killed(KillCause::Protocol), Facts::Death(report)) => {
            elapsed = report.elapsed;
            TaskErrorKind::WorkerDied {
                pid: report.pid,
                exit: report.exit,
                stderr_tail: report.stderr_tail.clone(),
            }
        }
        (End::Quarantined, Facts::Death(report)) => {
            elapsed = report.elapsed;
            quarantined = true;
            TaskErrorKind::WorkerDied {
                pid: report.pid,
                exit: report.exit,
                stderr_tail: report.stderr_tail.clone(),
            }
        }
        (End::Killed(KillCause::Deadline), facts) => {
            if let Facts::Death(report) = facts {
                elapsed = report.elapsed;
            }
            let limit = task.limits.as_ref().and_then(|limits| limits.hard).unwrap_or_default();
            TaskErrorKind::DeadlineExceeded { limit, elapsed: elapsed.unwrap_or(limit).max(limit) }
        }
        (End::Killed(KillCause::Section), Facts::Death(report)) => {
            elapsed = report.elapsed;
            let limit = report.section_limit;
            TaskErrorKind::DeadlineExceeded { limit, elapsed: elapsed.unwrap_or(limit).max(limit) }
        }
        (End::Expired, _) => {
            let limits = task.limits.as_ref();
            let limit = limits.and_then(|limits| limits.queue).unwrap_or_default();
            let waited = limits.map(|limits| clock::now().saturating_since(limits.submitted));
            waited_too_long = true;
            TaskErrorKind::DeadlineExceeded { limit, elapsed: waited.unwrap_or(limit) }
        }
        (End::Killed(_), facts) => {
            if let Facts::Death(report) = facts {
                elapsed = report.elapsed;
            }
            TaskErrorKind::Killed
        }
        (End::Cancelled, _) => TaskErrorKind::Cancelled,
        (End::Broken, _) => {
            TaskErrorKind::PoolBroken { reason: broken.unwrap_or("unknown").to_owned() }
        }
        (End::Closed, _) => TaskErrorKind::PoolClosed,
        (End::Reported | End::Died | End::Quarantined, _) => {
            // The machine says so only while it handles the event that carries the facts.
            debug_assert!(false, "an end without its facts");
            TaskErrorKind::PoolClosed
        }
    };
    let mut error = TaskError::new(kind).of_task(task.id, attempt, task.label()).after(elapsed);
    if quarantined {
        error = error.quarantined();
    }
    if broke_protocol {
        error = error.broke_protocol();
    }
    if waited_too_long {
        error = error.in_the_queue();
    }
    Err(error)
}
