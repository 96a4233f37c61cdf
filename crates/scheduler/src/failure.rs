//! The reasons for another attempt at a task.

use serde::{Deserialize, Serialize};

/// The failure of a function in a worker that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// It panicked.
    Panic,
    /// It returned an `Err`.
    Error,
}

/// The end of an attempt after which another one follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetryWhy {
    /// It ended with its worker.
    Death,
    /// The function failed.
    Failure(Failure),
}
