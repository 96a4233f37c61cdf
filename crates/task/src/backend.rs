//! The part of an executor that its handles and waits rest on.
//!
//! For crates that run tasks, such as `brigade-pool` and `brigade-cluster`. Any release may change
//! this part.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use brigade_crash::Stack;
use brigade_sys::clock::Monotonic;

pub use crate::callbacks::Callbacks;
pub use crate::completion_queue::{CompletionQueue, Woken};
use crate::error::SubmitErrorKind;
pub use crate::outcome::{Outcome, OutcomeKind, Value};
pub use crate::plain::Plain;
pub use crate::promise::{Content, Facts, Promise};
pub use crate::waiters::{Attached, Waiters, Wakeups};
pub use crate::waiting::{Sleeper, Turn, Wait, park_for};

/// The locks, atomics and threads of modules that are checked by models.
pub mod sync {
    pub use crate::sync::*;
}

/// The state of an executor that its handles reach.
pub trait Backend: Sized + Send + Sync + 'static {
    /// The facts of a task.
    type Facts: Facts + Send + Sync;
    /// The content of a task's promise.
    type Content: Content + Send;
    /// A task as the executor keeps it.
    type Task: Task<Backend = Self>;
    /// A task before it is submitted.
    type Submission: fmt::Debug + Send;

    /// Submits the task, or wakes `context` when there may be room for it.
    fn poll_submit(
        submission: &mut Self::Submission,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), SubmitErrorKind>>;

    /// Returns the task that was submitted.
    fn submitted(submission: Self::Submission) -> Self::Task;

    /// Gives up a submission that may wait for room.
    fn give_up(submission: Self::Submission) {
        drop(submission);
    }

    /// Returns `true` in a fork of the process that created the executor.
    fn is_forked(&self) -> bool;

    /// Blocks until `wait` is no longer pending or the deadline has passed.
    fn wait_for(&self, wait: &impl Wait, deadline: Option<Instant>);

    /// Handles all outcomes that have arrived. Does not block.
    fn collect(&self) {}

    /// Returns the queue of the executor's callbacks.
    fn callbacks(&self) -> &Arc<Callbacks<ValueOf<Self>>>;
}

/// The encoded values of an executor.
pub type ValueOf<B> = <<B as Backend>::Content as Content>::Value;

/// The promise of an executor's task.
pub type PromiseOf<B> = Promise<<B as Backend>::Facts, <B as Backend>::Content>;

/// A submitted task, as its executor keeps it. It is a promise with a way to the executor.
pub trait Task: Clone + fmt::Debug + Send + Sync + 'static {
    /// The executor's state.
    type Backend: Backend<Task = Self>;

    /// Returns the state of the executor.
    fn backend(&self) -> &Arc<Self::Backend>;

    /// Returns the promise of the task's outcome.
    fn promise(&self) -> &PromiseOf<Self::Backend>;

    /// Returns the promise of the task's outcome.
    fn promise_mut(&mut self) -> &mut PromiseOf<Self::Backend>;

    /// Returns the label of the task.
    fn label(&self) -> Option<&Arc<str>>;

    /// Returns the time since which a worker runs the task, if the executor knows it.
    fn running_since(&self) -> Option<Monotonic> {
        None
    }

    /// Returns where the task is now, if it runs and its worker answers in time.
    fn stack(&self) -> Option<Stack> {
        None
    }

    /// Cancels a task without an outcome. The promise says whether that was in time.
    fn cancel(&self);

    /// Ends a task without an outcome. Returns `true` if it is running and will be ended; otherwise
    /// the promise says whether it was ended in time.
    fn kill(&self) -> bool;

    /// Asks to cancel a task without an outcome. Does not block.
    fn request_cancel(&self) {
        self.cancel();
    }

    /// Asks to end a task without an outcome. Does not block.
    fn request_kill(&self) {
        self.kill();
    }

    /// Looks for the outcome before a future is polled. Returns `false` if the future is to be
    /// polled again later.
    fn glance(&self) -> bool {
        true
    }

    /// Notes that a future has taken the outcome.
    fn polled(&self) {}
}
