//! The part of an executor that its handles and waits rest on.
//!
//! For crates that run tasks, such as `brigade-pool` and `brigade-cluster`. Any release may change
//! this part.

use std::sync::Arc;
use std::time::Instant;

use brigade_crash::Stack;
use brigade_sys::clock::Monotonic;

pub use crate::bytes::{Bytes, Few};
pub use crate::callbacks::Callbacks;
pub use crate::completion_queue::{CompletionQueue, Woken};
pub use crate::outcome::{Outcome, OutcomeKind, Value};
pub use crate::promise::{Content, Facts, Promise};
pub use crate::sync;
pub use crate::waiters::Waiters;
pub use crate::waiting::{Sleeper, Turn, Wait, park_for};

/// The state of an executor, as the handles of its tasks reach it.
pub trait Backend<F: Facts>: Send + Sync {
    /// Returns `true` in a fork of the process that created the executor.
    fn is_forked(&self) -> bool;

    /// Blocks until `wait` is no longer pending or the deadline has passed.
    fn wait_for(&self, wait: &dyn Wait, deadline: Option<Instant>);

    /// Handles all outcomes that have arrived. Does not block.
    fn collect(&self) {}

    /// Returns the queue of the executor's callbacks.
    fn callbacks(&self) -> &Arc<Callbacks<F::Value>>;

    /// Returns the time since which a worker runs the task, if the executor knows it.
    fn running_since(&self, _task: &F) -> Option<Monotonic> {
        None
    }

    /// Returns where the task is now, if it runs and its worker answers in time.
    fn stack(&self, _task: &F) -> Option<Stack> {
        None
    }

    /// Asks to cancel a task without an outcome. Does not block.
    fn cancel(&self, task: &F);

    /// Asks to end a task without an outcome. Does not block. Returns `true` if it is running and
    /// will be ended.
    fn kill(&self, task: &F) -> bool;

    /// Waits until an executor that is elsewhere has answered, for some time. The promise then says
    /// whether the task was ended in time.
    fn wait_for_end(&self, _task: &Promise<F>) {}

    /// Looks for the outcome before a future is polled. Returns `false` if the future is to be
    /// polled again later.
    fn glance(&self, _task: &Promise<F>) -> bool {
        true
    }

    /// Notes that a future has taken the outcome.
    fn polled(&self, _task: &F) {}
}
