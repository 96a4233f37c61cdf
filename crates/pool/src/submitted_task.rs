//! A task as its handle holds it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use brigade_crash::Stack;
use brigade_sys::clock::Monotonic;
use brigade_task::backend::{PromiseOf, Task, Wait};

use crate::cell::TaskCell;
use crate::drive::{Glance, Shared};

/// A task with its pool.
#[derive(Clone)]
pub struct SubmittedTask {
    pub(crate) cell: TaskCell,
    pub(crate) pool: Arc<Shared>,
}

impl fmt::Debug for SubmittedTask {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cell.fmt(out)
    }
}

impl Task for SubmittedTask {
    type Backend = Shared;

    #[inline]
    fn backend(&self) -> &Arc<Shared> {
        &self.pool
    }

    #[inline]
    fn promise(&self) -> &PromiseOf<Shared> {
        &self.cell
    }

    #[inline]
    fn label(&self) -> Option<&Arc<str>> {
        self.cell.label()
    }

    fn running_since(&self) -> Option<Monotonic> {
        self.pool.running_since(self.cell.task_ref()?)
    }

    fn stack(&self, timeout: Duration) -> Option<Stack> {
        self.pool.stack(self.cell.task_ref()?, Some(timeout))
    }

    fn cancel(&self) {
        self.pool.cancel(&self.cell);
    }

    fn kill(&self) -> bool {
        self.cell.task_ref().is_some_and(|task| self.pool.kill(task))
    }

    #[inline]
    fn glance(&self) -> bool {
        let Self { cell, pool } = self;
        if (cell.take_may_look() || pool.woken.are_polled())
            && cell.is_pending()
            && pool.glance(&**cell) == Glance::Yield
        {
            cell.set_may_look();
            return false;
        }
        true
    }

    #[inline]
    fn polled(&self) {
        self.pool.woken.poll(self.cell.id);
    }
}
