//! Looks of futures at the rings: busy polling of a bounded time.
//!
//! A task of an executor that awaits a handle is often all that its thread has to do. If the thread
//! then sleeps, the outcome costs two wake-ups: that of the collector thread, and its own. But it
//! must not keep other tasks of the executor waiting for long. So a future that is polled listens
//! as a caller does, but spins for at most [`GLANCE`] and never sleeps:
//! - only if the thread seems to have no other future of this pool to poll. That is so at the first
//!   poll if the pool had nothing else to do when the task was submitted, and the one before; and
//!   if other tasks wait and the futures that were woken last have been polled, see `woken`;
//! - when spins are in vain, because tasks take longer, fewer and fewer futures spin. Workers then
//!   ring the collector thread, even if it relies on callers that keep coming;
//! - a task whose futures are all ready at once would never return to its executor. So after
//!   [`BUDGET`] of them, the next one wakes its own task and returns.

pub(crate) mod woken;

use std::time::Duration;

use brigade_wire::link::ring::Spins;

/// Longest time for which a future spins: about what the way through the collector thread costs.
pub(super) const GLANCE: Duration = Duration::from_micros(20);

/// Number of futures that may be ready in succession, about 50 µs of brief tasks.
const BUDGET: u32 = 32;

/// The decision about the first poll of a future.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Glance {
    /// It spins.
    Spin,
    /// It waits to be woken.
    Skip,
    /// It lets other tasks of the executor run first.
    Yield,
}

/// Decides whether futures spin.
#[derive(Debug, Default)]
pub(in crate::drive) struct Glances {
    /// `true` if the pool had nothing else to do at the last submission.
    was_alone: bool,
    /// Number of spins in succession that were not in vain.
    found: u32,
    spins: Spins,
}

impl Glances {
    /// Returns `true` if the future of a task that is submitted may look. `is_alone` is `true` if
    /// the pool has nothing else to do.
    #[inline]
    pub(in crate::drive) fn submit(&mut self, is_alone: bool) -> bool {
        std::mem::replace(&mut self.was_alone, is_alone) && is_alone
    }

    pub(super) fn begin(&mut self) -> Glance {
        if !self.spins.begin() {
            return Glance::Skip;
        }
        if self.found == BUDGET {
            self.found = 0;
            return Glance::Yield;
        }
        Glance::Spin
    }

    /// Records the end of a spin.
    pub(super) fn end(&mut self, found: bool) {
        self.found = if found { self.found + 1 } else { 0 };
        self.spins.end(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn futures_do_not_look_after_spins_in_vain() {
        let mut glances = Glances::default();
        let mut skipped_after = |found| {
            glances.end(found);
            (0..1_000).take_while(|_| glances.begin() == Glance::Skip).count()
        };
        assert_eq!([false, false, false, true].map(&mut skipped_after), [0, 1, 3, 0]);
    }

    #[test]
    fn the_first_of_many_futures_does_not_look() {
        let mut glances = Glances::default();
        let may_look = [true, false, true, true].map(|is_alone| glances.submit(is_alone));
        assert_eq!(may_look, [false, false, false, true]);
    }

    #[test]
    fn a_task_returns_to_its_executor_after_some_spins() {
        let mut glances = Glances::default();
        for _ in 0..2 {
            for _ in 0..BUDGET {
                assert_eq!(glances.begin(), Glance::Spin);
                glances.end(true);
            }
            assert_eq!(glances.begin(), Glance::Yield);
        }
    }
}
