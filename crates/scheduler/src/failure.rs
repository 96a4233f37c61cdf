//! The reasons for another attempt at a task.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// The failure of a function in a worker that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// It panicked.
    Panic,
    /// It returned an `Err`.
    Error,
}

/// Consecutive items of a chunk that failed in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedItems {
    /// Index of the first one in the chunk.
    pub first: u32,
    /// Their number.
    pub count: NonZeroU32,
    /// The way in which they failed.
    pub failure: Failure,
}

/// The end of an attempt after which another one follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetryWhy {
    /// It ended with its worker.
    Death,
    /// The function failed.
    Failure(Failure),
}
