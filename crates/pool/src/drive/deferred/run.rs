//! Runs what was deferred until the core's lock is released.

use brigade_supervisor::threads::cleaner;

use crate::drive::deferred::{Deferred, ToFree, ToKill, Work};
use crate::drive::owner;
use crate::drive::shared::Shared;
use crate::drive::user_code::queue::UserCode;

impl Deferred {
    #[inline]
    pub(in crate::drive) fn run(&mut self, shared: &Shared) {
        // Each submission and each look at the rings passes here, mostly with nothing to do.
        if self.has_work() {
            self.run_work(shared);
        }
    }

    #[inline(never)]
    fn run_work(&mut self, shared: &Shared) {
        if let Some(work) = self.take_work() {
            work.run(shared);
        }
    }
}

impl Work {
    fn run(self, shared: &Shared) {
        if self.wake_reaper {
            shared.supervisor.reaper.wake();
        }
        for ToKill { process, at_once, sample } in self.to_kill {
            let kill = if sample { cleaner::kill_with_sample } else { cleaner::kill };
            kill(shared, &process, at_once);
        }
        shared.supervisor.output.note_all(self.notes);
        for _ in 0..self.to_call {
            shared.room.notify_one();
        }
        let to_wake = self.to_wake.into_iter();
        let mut user_code: Vec<_> = to_wake.map(|waker| UserCode::Waker(None, waker)).collect();
        let mut to_notify = self.to_notify.into_iter();
        while let Some(mut waiters) = to_notify.next() {
            let task = waiters.task;
            if let Some(waker) = waiters.take_only_waker() {
                // The rest are likely to have wakers, too. A thread that sleeps has none.
                user_code.reserve(1 + to_notify.len());
                user_code.push(UserCode::Waker(Some(task), waker));
                continue;
            }
            let woken = waiters.notify();
            if woken.ring_doorbell {
                shared.ring_caller();
            }
            let wakers = woken.wakers.into_iter();
            user_code.extend(wakers.map(|waker| UserCode::Waker(Some(task), waker)));
        }
        for span in self.to_close {
            shared.close_span(span);
        }
        for process in self.to_start {
            shared.supervisor.start(process);
        }
        for to_copy in self.to_copy {
            to_copy.run(shared);
        }
        let mut to_free = self.to_free;
        if owner::is_depended_on() {
            to_free.retain(ToFree::is_slow);
            if !to_free.is_empty() {
                shared.supervisor.cleaner.free(Box::new(to_free));
            }
        } else {
            drop(to_free);
        }
        if !user_code.is_empty() {
            shared.run_user_code(user_code);
        }
        if self.ended {
            #[cfg(feature = "recording")]
            shared.retire();
            shared.release_threads();
        }
    }
}
