//! Pools that most tests begin with, and checks for a worker's death.

use std::time::Duration;

use brigade::{Exit, Pool, PoolBuilder, Task, TaskError, TaskErrorKind};

/// Returns the builder of a named pool with a short grace, so that a worker that does not exit
/// fails its test soon.
pub fn builder(workers: usize) -> PoolBuilder {
    Pool::builder().workers(workers).name("test").stop_grace(Duration::from_millis(500))
}

/// Builds the pool described by [`builder`].
///
/// # Panics
/// Panics if it cannot be built.
pub fn pool(workers: usize) -> Pool {
    builder(workers).build().expect("a pool")
}

/// Returns the number of the current attempt, inside a task.
pub fn attempt() -> u32 {
    brigade::worker::attempt().map_or(0, brigade_wire::Attempt::get)
}

/// Returns the pid and exit status of the process that died under a task.
///
/// # Panics
/// Panics if the task failed in any other way, or succeeded.
#[track_caller]
pub fn worker_died<R: std::fmt::Debug>(outcome: Result<R, TaskError>) -> (u32, Exit) {
    let error = outcome.expect_err("the worker should have died");
    match error.kind() {
        TaskErrorKind::WorkerDied { pid, exit, .. } => (*pid, *exit),
        _ => panic!("the worker should have died, but the outcome is {error:?}"),
    }
}

/// Returns the square.
pub fn square(number: u64) -> u64 {
    number * number
}

/// Joins texts: a key that tests share with the program `server`.
pub static JOIN: Task<Vec<String>, String> =
    Task::new("join/1", |texts: Vec<String>| texts.concat());

/// Returns the number. Aborts at fifty.
///
/// # Panics
/// If it is a multiple of seven.
pub fn picky(number: u64) -> u64 {
    assert!(!number.is_multiple_of(7), "{number} is a multiple of seven");
    if number == 50 {
        std::process::abort();
    }
    number
}
