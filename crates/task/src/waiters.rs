//! The waiters of a task.

use std::sync::Arc;
use std::task::Waker;

use brigade_wire::TaskId;

use crate::callbacks::{Callback, Callbacks};
use crate::completion_queue::CompletionQueue;
use crate::outcome::Value;
use crate::waiting::Sleeper;

/// The things that an executor keeps with the waiters of a task.
pub trait Attached {
    /// Returns `true` if nothing has to be done for it once there is an outcome.
    fn is_empty(&self) -> bool;
}

/// Everything that is to be notified of a task's outcome.
#[derive(Debug)]
pub struct Waiters<P, V> {
    task: TaskId,
    /// The things that the executor keeps until the outcome, because a promise has room for one
    /// thing.
    pub attached: P,
    pub(crate) waker: Option<Waker>,
    /// Queues of threads that wait for several tasks, each with the task's token in it.
    pub(crate) completions: Vec<(Arc<CompletionQueue>, u64)>,
    /// In the order of registration; pushed to their queue as soon as the outcome is known.
    pub(crate) callbacks: Option<ToCall<V>>,
    /// The thread that sleeps for this task alone. There is at most one, because that takes the
    /// handle or a unique reference to it.
    pub(crate) sleeper: Option<Sleeper>,
}

/// The callbacks of a task, and their queue.
type ToCall<V> = (Arc<Callbacks<V>>, Vec<Callback<V>>);

/// Wake-ups that remain after the waiters were notified.
#[derive(Debug)]
pub struct Wakeups<P> {
    /// `true` if a waiting thread sleeps at the doorbell, which the calling thread has to ring.
    pub ring_doorbell: bool,
    /// The task that has an outcome.
    pub task: TaskId,
    /// User code, to be called where it may run.
    pub waker: Option<Waker>,
    /// Those of futures that wait for several tasks.
    pub wakers: Vec<Waker>,
    /// The things that the executor kept.
    pub attached: P,
}

impl<P: Attached, V: Value> Waiters<P, V> {
    /// Creates the record for a task without waiters.
    pub fn of(task: TaskId, attached: P) -> Self {
        Self {
            task,
            attached,
            waker: None,
            completions: Vec::new(),
            callbacks: None,
            sleeper: None,
        }
    }

    /// Returns those to notify of an item that a task has emitted.
    pub fn of_item(
        task: TaskId,
        attached: P,
        completions: Option<(Arc<CompletionQueue>, u64)>,
    ) -> Self {
        Self { completions: completions.into_iter().collect(), ..Self::of(task, attached) }
    }

    /// Takes the waker of the task's future if nobody else waits, as is most common.
    #[inline]
    pub fn take_only_waker(&mut self) -> Option<(TaskId, Waker)> {
        let is_only = self.has_no_others();
        if is_only { self.waker.take().map(|waker| (self.task, waker)) } else { None }
    }

    /// Wakes all waiters without running user code.
    #[must_use]
    pub fn notify(self) -> Wakeups<P> {
        if let Some((callbacks, _)) = self.callbacks {
            callbacks.wake();
        }
        let mut ring_doorbell = self.sleeper.is_some_and(Sleeper::wake);
        let mut wakers = Vec::new();
        for (completions, token) in self.completions {
            let mut woken = completions.add(token);
            ring_doorbell |= woken.ring_doorbell;
            wakers.append(&mut woken.wakers);
        }
        let Self { task, waker, attached, .. } = self;
        Wakeups { ring_doorbell, task, waker, wakers, attached }
    }

    /// Returns `true` if futures may wait.
    pub fn has_waker(&self) -> bool {
        self.waker.is_some() || self.completions.iter().any(|(queue, _)| queue.is_polled())
    }

    /// Returns `true` if there is nothing to notify or to close.
    pub fn is_empty(&self) -> bool {
        self.waker.is_none() && self.has_no_others()
    }

    #[inline]
    fn has_no_others(&self) -> bool {
        self.completions.is_empty()
            && self.callbacks.is_none()
            && self.sleeper.is_none()
            && self.attached.is_empty()
    }
}
