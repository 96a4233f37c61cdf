//! Work to be done after the core's lock is released, such as wake-ups, for which the kernel has
//! its `wake_q`.
//!
//! User code never runs under that lock, nor on a thread that others depend on. Urgent work comes
//! first: the reaper is woken, workers are killed, waiters are notified. Then large memory is
//! freed, and wakers run last, on a thread that may run them; see `run`.

mod run;

use std::cell::Cell;
use std::mem;
use std::sync::Arc;
use std::task::Waker;

use brigade_supervisor::{Notes, WorkerProcess};
use brigade_wire::ring::WakeUp;
use tracing::Level;

use super::large::ToCopy;
use crate::cell::{Completed, TaskCell, Waiters};
use crate::payload::{Argument, Outcome};
use crate::task_span::TaskSpan;

/// Work gathered under the core's lock. See the module's documentation. Mostly there is none, and
/// then this is a single word.
#[derive(Default)]
pub(super) struct Deferred(Option<Box<Work>>);

#[derive(Default)]
pub(super) struct Work {
    /// Sleeping workers that were sent something. To wake one takes some microseconds, for which
    /// other threads would wait for the lock.
    pub(super) to_rouse: Vec<WakeUp>,
    #[expect(clippy::vec_box, reason = "a cell has them in a box, and often there is just one")]
    pub(super) to_notify: Vec<Box<Waiters>>,
    /// The spans of tasks that have outcomes.
    pub(super) to_close: Vec<TaskSpan>,
    /// Number of threads to notify that wait for room in the queue.
    pub(super) to_call: usize,
    /// Futures that wait for room in the queue.
    pub(super) to_wake: Vec<Waker>,
    /// They are not killed under the lock, because finding the processes that a worker has started
    /// takes long.
    pub(super) to_kill: Vec<ToKill>,
    /// Workers to start. Callers are woken before: they take less of a processor.
    pub(super) to_start: Vec<Arc<WorkerProcess>>,
    pub(super) notes: Notes,
    /// Values in the memory of workers, and arguments for it.
    pub(super) to_copy: Vec<ToCopy>,
    pub(super) to_free: Vec<ToFree>,
    pub(super) wake_reaper: bool,
    pub(super) ended: bool,
}

thread_local! {
    /// Memory for the thread's next work.
    static SPARE: Cell<Option<Box<Work>>> = const { Cell::new(None) };
}

/// A worker to be killed.
pub(super) struct ToKill {
    pub(super) process: Arc<WorkerProcess>,
    /// Its death may be reported at once.
    pub(super) at_once: bool,
    /// It is asked where it is first.
    pub(super) sample: bool,
}

/// Memory that is not freed under the lock.
pub(super) enum ToFree {
    Argument(Argument),
    /// Possibly the last reference to a task with its outcome.
    Task(TaskCell),
}

impl ToFree {
    pub(super) fn is_slow(&self) -> bool {
        match self {
            Self::Argument(argument) => argument.size() >= SLOW_TO_FREE,
            // Otherwise the last owner frees it.
            Self::Task(task) => task.has_one_owner(),
        }
    }
}

/// Returning this many bytes to the system takes a quarter of a millisecond.
const SLOW_TO_FREE: usize = 1 << 20;

impl Deferred {
    /// Returns the work, to add to it.
    pub(super) fn work(&mut self) -> &mut Work {
        self.0.get_or_insert_with(|| SPARE.try_with(Cell::take).ok().flatten().unwrap_or_default())
    }

    /// Wakes the reaper for nothing that was added so far.
    pub(super) fn let_reaper_sleep(&mut self) {
        if let Some(work) = &mut self.0 {
            work.wake_reaper = false;
        }
    }

    /// Returns `true` if work was added, or may have been.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        self.0.is_some()
    }

    /// Wakes workers, takes the rest of the work out, and keeps its memory for the thread's next
    /// one.
    pub(super) fn take_work(&mut self) -> Option<Work> {
        let mut memory = self.0.take()?;
        memory.to_rouse.clear();
        let to_rouse = mem::take(&mut memory.to_rouse);
        let work = mem::replace(&mut *memory, Work { to_rouse, ..Work::default() });
        // Fails only at the end of the thread.
        let _ = SPARE.try_with(|spare| spare.set(Some(memory)));
        Some(work)
    }

    /// Wakes the worker, if it has to be woken.
    #[inline]
    pub(super) fn rouse(&mut self, wake_up: Option<WakeUp>) {
        if let Some(wake_up) = wake_up {
            self.work().to_rouse.push(wake_up);
        }
    }

    pub(super) fn note(&mut self, level: Level, emit: impl FnOnce(&str) + Send + 'static) {
        self.work().notes.add(level, emit);
    }

    /// Notifies those that wait, if there are any.
    #[inline]
    pub(super) fn notify(&mut self, waiters: Option<Box<Waiters>>) {
        if let Some(waiters) = waiters {
            self.work().to_notify.push(waiters);
        }
    }

    /// Stores the outcome of a task.
    #[inline]
    pub(super) fn complete(&mut self, task: TaskCell, outcome: Outcome) {
        let Completed { waiters, argument, span, is_large } = task.complete(outcome);
        self.notify(waiters);
        if let Some(argument) = argument {
            self.work().to_free.push(ToFree::Argument(argument));
        }
        if let Some(span) = span.filter(|span| span.is_open()) {
            self.work().to_close.push(*span);
        }
        if is_large {
            self.work().to_free.push(ToFree::Task(task));
        }
    }

    /// Returns `true` if user code has to run, or a value to be copied, which may take long.
    #[inline]
    pub(super) fn takes_long(&self) -> bool {
        self.0.as_ref().is_some_and(|work| {
            !work.to_copy.is_empty()
                || !work.to_wake.is_empty()
                || work.to_notify.iter().any(|waiters| waiters.has_waker())
        })
    }
}
