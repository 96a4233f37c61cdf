//! The waiters of a task.

use std::sync::Arc;
use std::task::Waker;

use brigade_wire::TaskId;

use crate::callbacks::{Callback, Callbacks};
use crate::completion_queue::CompletionQueue;
use crate::payload::Argument;
use crate::task_span::TaskSpan;
use crate::waiting::Sleeper;

/// Everything that is to be notified of a task's outcome.
#[derive(Debug)]
pub(crate) struct Waiters {
    task: TaskId,
    /// The task's argument, because a cell has room for one thing.
    pub(super) argument: Argument,
    pub(super) waker: Option<Waker>,
    /// Queues of threads that wait for several tasks, each with the task's token in it.
    pub(super) completions: Vec<(Arc<CompletionQueue>, u64)>,
    /// In the order of registration; pushed to their queue as soon as the outcome is known.
    pub(super) callbacks: Option<(Arc<Callbacks>, Vec<Callback>)>,
    /// The thread that sleeps for this task alone. There is at most one, because that takes the
    /// handle or a unique reference to it.
    pub(super) sleeper: Option<Sleeper>,
    /// `None` for a task in whose run no subscriber is interested.
    pub(super) span: Option<Box<TaskSpan>>,
}

/// Wake-ups that remain after the waiters were notified.
pub(crate) struct Wakeups {
    /// `true` if a waiting thread sleeps at the pool's doorbell, which the calling thread has to
    /// ring.
    pub(crate) ring_doorbell: bool,
    pub(crate) task: TaskId,
    /// User code, to be called where it may run.
    pub(crate) waker: Option<Waker>,
    /// Those of futures that wait for several tasks.
    pub(crate) wakers: Vec<Waker>,
    /// The span to close.
    pub(crate) span: Option<Box<TaskSpan>>,
}

impl Waiters {
    pub(super) fn of(task: TaskId, argument: Argument) -> Self {
        Self {
            task,
            argument,
            waker: None,
            completions: Vec::new(),
            callbacks: None,
            sleeper: None,
            span: None,
        }
    }

    /// Returns those to notify of an item that a task has emitted.
    pub(crate) fn of_item(task: TaskId, completions: Option<(Arc<CompletionQueue>, u64)>) -> Self {
        Self { completions: completions.into_iter().collect(), ..Self::of(task, Argument::EMPTY) }
    }

    /// Takes the waker of the task's future if nobody else waits, as is most common.
    #[inline]
    pub(crate) fn take_only_waker(&mut self) -> Option<(TaskId, Waker)> {
        let is_only = self.completions.is_empty()
            && self.callbacks.is_none()
            && self.sleeper.is_none()
            && self.span.is_none();
        if is_only { self.waker.take().map(|waker| (self.task, waker)) } else { None }
    }

    /// Wakes all waiters without running user code.
    #[must_use]
    pub(crate) fn notify(self) -> Wakeups {
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
        let span = self.span.filter(|span| span.is_open());
        Wakeups { ring_doorbell, task: self.task, waker: self.waker, wakers, span }
    }

    pub(crate) fn has_waker(&self) -> bool {
        self.waker.is_some() || self.completions.iter().any(|(queue, _)| queue.is_polled())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waker.is_none()
            && self.completions.is_empty()
            && self.callbacks.is_none()
            && self.sleeper.is_none()
            && self.span.is_none()
    }
}
