//! The waiters of a task.

use std::sync::Arc;
use std::task::Waker;

use brigade_wire::TaskId;

use crate::callbacks::{Callback, Callbacks};
use crate::completion_queue::{CompletionQueue, Woken};
use crate::promise::{Content, Facts};
use crate::waiting::Sleeper;

/// Everything that is to be notified of a task's outcome.
#[derive(Debug)]
pub struct Waiters<F: Facts> {
    /// The task that they wait for.
    pub task: TaskId,
    /// The argument of the task, because a promise has room for one thing.
    pub argument: Content<F>,
    pub(crate) waker: Option<Waker>,
    /// Queues of threads that wait for several tasks, each with the task's token in it.
    pub(crate) completions: Vec<(Arc<CompletionQueue>, u64)>,
    /// In the order of registration; pushed to their queue as soon as the outcome is known.
    pub(crate) callbacks: Option<ToCall<F::Value>>,
    /// The thread that sleeps for this task alone. There is at most one, because that takes the
    /// handle or a unique reference to it.
    pub(crate) sleeper: Option<Sleeper>,
}

/// The callbacks of a task, and their queue.
type ToCall<V> = (Arc<Callbacks<V>>, Vec<Callback<V>>);

impl<F: Facts> Waiters<F> {
    /// Creates the record for a task without waiters.
    pub(crate) fn of(task: TaskId, argument: Content<F>) -> Self {
        Self {
            task,
            argument,
            waker: None,
            completions: Vec::new(),
            callbacks: None,
            sleeper: None,
        }
    }

    /// Returns those to notify of an item that a task has emitted.
    pub fn of_item(task: TaskId, completions: (Arc<CompletionQueue>, u64)) -> Self {
        Self { completions: vec![completions], ..Self::of(task, Content::NOTHING) }
    }

    /// Takes the waker of the task's future if nobody else waits, as is most common.
    #[inline]
    pub fn take_only_waker(&mut self) -> Option<Waker> {
        if self.has_no_others() { self.waker.take() } else { None }
    }

    /// Wakes all waiters without running user code.
    pub fn notify(self) -> Woken {
        if let Some((callbacks, _)) = self.callbacks {
            callbacks.wake();
        }
        let mut ring_doorbell = self.sleeper.is_some_and(Sleeper::wake);
        let mut wakers: Vec<_> = self.waker.into_iter().collect();
        for (completions, token) in self.completions {
            let mut woken = completions.add(token);
            ring_doorbell |= woken.ring_doorbell;
            wakers.append(&mut woken.wakers);
        }
        Woken { ring_doorbell, wakers }
    }

    /// Returns `true` if futures may wait.
    pub fn has_waker(&self) -> bool {
        self.waker.is_some() || self.completions.iter().any(|(queue, _)| queue.is_polled())
    }

    /// Returns `true` if there is nothing to notify.
    pub(crate) fn are_none(&self) -> bool {
        self.waker.is_none() && self.has_no_others()
    }

    #[inline]
    fn has_no_others(&self) -> bool {
        self.completions.is_empty() && self.callbacks.is_none() && self.sleeper.is_none()
    }
}
