//! Names for tasks, attempts and workers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of a task; never used twice in a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskId(u64);

/// Which run of a task, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attempt(u32);

/// A worker process: the slot it fills, and how many processes filled that slot up to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkerId {
    /// From 0 to one less than the pool's workers.
    pub slot: u32,
    /// From 1 on.
    pub generation: u32,
}

impl TaskId {
    /// The task with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Attempt {
    /// The first run.
    pub const fn first() -> Self {
        Self(1)
    }

    /// The run with this number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The run after this.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "task {}", self.0)
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "attempt {}", self.0)
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "worker {}.{}", self.slot, self.generation)
    }
}
