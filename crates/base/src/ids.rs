//! Identifiers of tasks, attempts and workers, and the result of a revocation: the words that the
//! protocol and the scheduler share. [`mix64`] makes seeds of ids and of other numbers, and
//! [`stable_hash`] names that outlive a process.
//!
//! ```
//! use brigade_base::{Attempt, TaskId, WorkerId};
//!
//! let worker = WorkerId { slot: 2, generation: 1 };
//! let (task, attempt) = (TaskId::new(7), Attempt::first().next());
//! assert_eq!(format!("{task}, {attempt}, {worker}"), "task 7, attempt 2, worker 2.1");
//! ```

mod mix;
mod stable_hash;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use mix::{SplitMix64, mix64};
pub use stable_hash::stable_hash;

/// The number of a task, unique within its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskId(u64);

/// The number of an attempt of a task, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attempt(u32);

/// A worker process, identified by its slot and the number of processes that the slot has had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkerId {
    /// From 0 to one less than the pool's number of workers.
    pub slot: u32,
    /// Counted from 1.
    pub generation: u32,
}

/// The result of revoking a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Revocation {
    /// The task never starts.
    Revoked,
    /// The worker has started the task.
    Begun,
    /// The word says neither that the task is queued nor that it has started: the task was revoked
    /// before, or the worker has overwritten the word.
    Neither,
}

impl TaskId {
    /// Creates the id of the task with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Attempt {
    /// Returns the first attempt.
    pub const fn first() -> Self {
        Self(1)
    }

    /// Creates the attempt with this number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the attempt that follows this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns the number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl WorkerId {
    /// Returns a number that looks random and that no other worker of the pool has.
    pub const fn seed(self) -> u64 {
        mix64((self.slot as u64) << 32 | self.generation as u64)
    }
}

/// Returns a number that looks random, made of `seed` and the number of an input. No other input
/// has it with this seed.
pub const fn seed_of_input(seed: u64, input: u64) -> u64 {
    mix64(seed ^ mix64(input.wrapping_add(1)))
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_seed_differs_by_slot_and_by_generation() {
        let seeds: HashSet<u64> = (0..100)
            .flat_map(|slot| (0..100).map(move |generation| WorkerId { slot, generation }))
            .map(WorkerId::seed)
            .collect();
        assert_eq!(seeds.len(), 100 * 100);
        assert!(!seeds.contains(&0));
        let inputs: HashSet<u64> = (0..100_u64)
            .flat_map(|seed| (0..100).map(move |input| seed_of_input(seed, input)))
            .collect();
        assert_eq!(inputs.len(), 100 * 100);
    }
}
