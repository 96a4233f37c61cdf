//! Waits for the outcome of a task.

use std::fmt::Debug;

use brigade::{Handle, TaskError};
use brigade_testkit_core::BOUND;
use serde::de::DeserializeOwned;

/// Waits for the outcome of a task that must end by itself.
///
/// # Panics
/// Panics if it does not end within [`BOUND`].
#[track_caller]
pub fn outcome<R: DeserializeOwned + Debug + 'static>(
    mut handle: Handle<R>,
) -> Result<R, TaskError> {
    match handle.wait_timeout(BOUND) {
        Some(outcome) => outcome,
        None => panic!("timed out after {BOUND:?} waiting for the outcome of {handle:?}"),
    }
}
