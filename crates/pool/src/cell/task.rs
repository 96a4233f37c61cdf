//! The task as its handle uses it.

use std::sync::Arc;

use brigade_crash::Stack;
use brigade_sys::clock::Monotonic;
use brigade_task::backend::{PromiseOf, Task, Wait};

use super::TaskCell;
use crate::drive::{Glance, Shared};

/// For tasks that were created for a handle.
impl Task for TaskCell {
    type Backend = Shared;

    #[inline]
    fn backend(&self) -> &Arc<Shared> {
        self.pool_of_handle()
    }

    #[inline]
    fn promise(&self) -> &PromiseOf<Shared> {
        self
    }

    #[inline]
    fn promise_mut(&mut self) -> &mut PromiseOf<Shared> {
        self
    }

    #[inline]
    fn label(&self) -> Option<&Arc<str>> {
        self.rare()?.label.as_ref()
    }

    fn running_since(&self) -> Option<Monotonic> {
        self.backend().running_since(self.task_ref()?)
    }

    fn stack(&self) -> Option<Stack> {
        self.backend().stack(self.task_ref()?, true)
    }

    fn cancel(&self) {
        self.backend().cancel(self);
    }

    fn kill(&self) -> bool {
        self.task_ref().is_some_and(|task| self.backend().kill(task))
    }

    #[inline]
    fn glance(&self) -> bool {
        let shared = self.backend();
        if (self.take_may_look() || shared.woken.are_polled())
            && self.is_pending()
            && shared.glance(&**self) == Glance::Yield
        {
            self.set_may_look();
            return false;
        }
        true
    }

    #[inline]
    fn polled(&self) {
        self.backend().woken.poll(self.id);
    }
}
