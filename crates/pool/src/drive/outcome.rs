//! From what a worker reports, or how it died, to what the handle gets.

use std::time::Duration;

use brigade_sys::process::Exit;
use brigade_wire::{Attempt, Outcome};

use crate::error::{TaskError, TaskErrorKind};
use crate::machine::{End, KillCause};
use crate::task::{PoolTask, RawOutcome};

/// What the driver knows while an event is handled; the machine only says whom it concerns.
pub(super) enum Facts {
    Nothing,
    /// A worker's answer.
    Answer(Result<Vec<u8>, TaskErrorKind>),
    /// How a worker died.
    Death(DeathReport),
}

/// How a worker's process ended.
#[derive(Debug, Clone)]
pub(super) struct DeathReport {
    pub(super) pid: u32,
    pub(super) exit: Exit,
    pub(super) stderr_tail: String,
    /// How long the task had been running.
    pub(super) elapsed: Option<Duration>,
}

/// Copies a worker's answer out of the link's buffer.
pub(super) fn answer(outcome: Outcome<'_>) -> Result<Vec<u8>, TaskErrorKind> {
    match outcome {
        Outcome::Value(bytes) => Ok(bytes.to_vec()),
        Outcome::Panicked(report) => Err(TaskErrorKind::Panicked {
            message: report.message,
            location: report.location.unwrap_or_else(|| "unknown".to_owned()),
            backtrace: report.backtrace,
        }),
        Outcome::ArgumentCodec(message)
        | Outcome::ResultCodec(message)
        | Outcome::UnknownFunction(message) => Err(TaskErrorKind::Codec { message }),
    }
}

/// The outcome that a task gets at its end.
pub(super) fn raw_outcome(
    task: &PoolTask,
    attempt: Attempt,
    end: End,
    facts: &mut Facts,
    broken: Option<&str>,
) -> RawOutcome {
    let mut elapsed = None;
    let kind = match (end, facts) {
        (End::Reported, Facts::Answer(answer)) => match std::mem::replace(answer, Ok(Vec::new())) {
            Ok(value) => return Ok(value),
            Err(kind) => kind,
        },
        (End::Died | End::Killed(KillCause::Protocol), Facts::Death(report)) => {
            elapsed = report.elapsed;
            TaskErrorKind::WorkerDied {
                pid: report.pid,
                exit: report.exit,
                stderr_tail: report.stderr_tail.clone(),
            }
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
        (End::Reported | End::Died, _) => {
            // The machine says so only while it handles the event that carries the facts.
            debug_assert!(false, "an end without its facts");
            TaskErrorKind::PoolClosed
        }
    };
    Err(TaskError::new(kind).of_task(task.cell.id, attempt, task.label.clone()).after(elapsed))
}
