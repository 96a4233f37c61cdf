//! What most tests begin with, and how they read a death.

use std::time::Duration;

use brigade::{Builder, Exit, Pool, TaskError, TaskErrorKind};

/// A pool with a name and a short grace, so that a worker that does not leave fails its test soon.
pub fn builder(workers: usize) -> Builder {
    Pool::builder().workers(workers).name("test").stop_grace(Duration::from_millis(500))
}

/// The pool that [`builder`] describes.
///
/// # Panics
/// When it cannot be built.
pub fn pool(workers: usize) -> Pool {
    builder(workers).build().expect("a pool")
}

/// Inside a task: which attempt this is.
pub fn attempt() -> u32 {
    brigade::worker::attempt().map_or(0, brigade_wire::Attempt::get)
}

/// The process that died under a task, and how.
///
/// # Panics
/// When the task failed in any other way, or not at all.
#[track_caller]
pub fn worker_died<R: std::fmt::Debug>(outcome: Result<R, TaskError>) -> (u32, Exit) {
    let error = outcome.expect_err("the worker should have died");
    match error.kind() {
        TaskErrorKind::WorkerDied { pid, exit, .. } => (pid, exit),
        _ => panic!("the worker should have died, but the outcome is {error:?}"),
    }
}
