//! The most common messages, encoded and decoded in parts.

use brigade_sys::clock::Monotonic;

use super::outcome::VALUE;
use super::words::{first_word, split_first_word};
use super::{IS_WORN, RUN_OFFSET};
use brigade_base::{Attempt, TaskId};

/// A task to run that has nothing rare, and whose argument is in the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunInline {
    /// The task's number.
    pub task: TaskId,
    /// The attempt's number.
    pub attempt: Attempt,
    /// Position of the task's state word in the shared table.
    pub ring_index: u16,
    /// The function's offset in the executable that both sides run.
    pub function: u64,
}

impl RunInline {
    /// Returns the words of the message's head; the argument follows.
    #[inline]
    pub fn words(&self) -> [u64; 3] {
        let first = first_word(RUN_OFFSET, 0, self.ring_index, self.attempt.get());
        [first, self.task.get(), self.function]
    }
}

/// The end of an attempt whose value is in the message.
///
/// Almost all messages from workers are such ends. Their words are used where they lie: an enum of
/// all messages would be moved several times, right after it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedInline {
    /// The task's number.
    pub task: TaskId,
    /// The attempt's number.
    pub attempt: Attempt,
    /// Position of the task's state word in the shared table.
    pub ring_index: u16,
    /// Time from start to end in nanoseconds, measured in the worker.
    pub run_time: u64,
    /// Time of the start.
    pub began: Monotonic,
    /// `true` if the worker exceeds its memory limit and asks to be replaced.
    pub worn: bool,
}

impl FinishedInline {
    /// Returns the words of the message's head; the value follows.
    #[inline]
    pub fn words(&self) -> [u64; 4] {
        let flags = if self.worn { IS_WORN } else { 0 };
        let first = first_word(VALUE, flags, self.ring_index, self.attempt.get());
        [first, self.task.get(), self.run_time, self.began.as_nanos()]
    }

    /// Decodes the message in `bytes`. Returns `None` if it is another message, or none.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (words, _) = bytes.as_chunks::<8>();
        let [first, task, run_time, began, ..] = words else { return None };
        let (kind, flags, ring_index, attempt) = split_first_word(u64::from_le_bytes(*first));
        (kind == VALUE && flags & !IS_WORN == 0).then(|| Self {
            task: TaskId::new(u64::from_le_bytes(*task)),
            attempt: Attempt::new(attempt),
            ring_index,
            run_time: u64::from_le_bytes(*run_time),
            began: Monotonic::from_nanos(u64::from_le_bytes(*began)),
            worn: flags & IS_WORN != 0,
        })
    }

    /// Returns the value in the message that was decoded.
    #[inline]
    pub fn value(bytes: &[u8]) -> &[u8] {
        bytes.get(4 * 8..).unwrap_or_default()
    }
}
