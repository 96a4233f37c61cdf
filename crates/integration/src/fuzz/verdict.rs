//! Judges whether an outcome is possible.

use brigade::{TaskError, TaskErrorKind};

use super::memory::WRITABLE;
use super::notes::Notes;
use super::summary::Summary;

/// An innocent task that did not get its value.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) number: u64,
    /// A wrong value, an error, or `None` for a missing item of a map.
    pub(super) outcome: Option<Result<Vec<u8>, TaskError>>,
}

impl Case {
    /// Fails unless a worker that was scribbled over explains the outcome.
    pub(super) fn judge(
        &self,
        notes: &Notes,
        retries: u32,
        summary: &mut Summary,
    ) -> Result<(), String> {
        let wrong = |why: &str| Err(format!("task {}: {why}: {}", self.number, self.shown()));
        if let Some(sound) = notes.sound_worker(self.number) {
            return wrong(&format!("worker {sound} was sound"));
        }
        if notes.victims.is_empty() {
            return wrong("no worker was scribbled over");
        }
        let Some(outcome) = &self.outcome else { return wrong("it is missing") };
        let Err(error) = outcome else {
            summary.garbled += 1;
            return Ok(());
        };
        let is_last = error.attempt() > retries || error.is_queue_deadline();
        match error.kind() {
            TaskErrorKind::WorkerDied { pid, .. } if !notes.victims.contains(pid) => {
                wrong("its worker was sound")
            }
            TaskErrorKind::WorkerDied { .. } if is_last => {
                summary.died += 1;
                Ok(())
            }
            TaskErrorKind::DeadlineExceeded { .. } if is_last => {
                summary.late += 1;
                Ok(())
            }
            TaskErrorKind::WorkerDied { .. } | TaskErrorKind::DeadlineExceeded { .. } => {
                wrong("it had retries left")
            }
            TaskErrorKind::Panicked { .. }
            | TaskErrorKind::Codec { .. }
            | TaskErrorKind::Function { .. } => {
                summary.garbled += 1;
                Ok(())
            }
            _ => wrong("nothing explains it"),
        }
    }

    fn shown(&self) -> String {
        match &self.outcome {
            Some(Ok(value)) => format!("a wrong value of {} bytes", value.len()),
            other => format!("{other:?}"),
        }
    }
}

/// Accepts any outcome of a guilty task that belongs to it, unless the task could write to
/// read-only memory.
pub(super) fn check_guilty(outcome: Result<u64, TaskError>) -> Result<(), String> {
    let Err(error) = outcome else { return Ok(()) };
    let fine = match error.kind() {
        TaskErrorKind::WorkerDied { .. }
        | TaskErrorKind::DeadlineExceeded { .. }
        | TaskErrorKind::Codec { .. }
        | TaskErrorKind::Function { .. } => true,
        TaskErrorKind::Panicked { message, .. } => !message.contains(WRITABLE),
        _ => false,
    };
    if fine { Ok(()) } else { Err(format!("a guilty task: {error:?}")) }
}
