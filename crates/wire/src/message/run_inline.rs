//! The most common message to workers, encoded in parts.

use super::RUN_OFFSET;
use super::words::first_word;
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
