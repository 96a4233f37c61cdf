//! Waiting for room in the queue, as a thread or as a future.
//!
//! Protocol (under the core's lock): a future that finds the queue full takes a place in line, in
//! the same step. After each event, as many futures are woken as the queue has room for, in the
//! order of their places. Room is not reserved for them: a future that finds the queue full again
//! goes back to its place. One that is dropped after it was woken wakes the next one.
//!
//! The first thread that finds the queue full collects outcomes until there is room, like a caller
//! that waits for a task: so no other thread has to run before it. The others block on
//! `Shared::room`. The threads that already run often fill the queue before a woken one gets there.
//! So after each event no more threads are on their way than the queue has room for, and than there
//! are cores. The submission of one that has come is the next event.
//!
//! While the collector thread runs user code, which may take long, outcomes are collected only by
//! callers. So if none listens then, a blocked thread is notified, finds no room, and collects.

use std::collections::BTreeMap;
use std::task::{Poll, Waker};

use brigade_scheduler::Constraints;

use crate::cell::TaskCell;
use crate::drive::deferred::Deferred;
use crate::drive::shared::{Core, Shared};
use crate::error::SubmitErrorKind;
use crate::when_full::WhenFull;

/// A place in the line for room in the queue; lower ones come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u64);

/// The wakers of the futures that wait for room, by place.
#[derive(Debug, Default)]
pub(in crate::drive) struct Line {
    waiting: BTreeMap<Place, Waker>,
    next: u64,
}

impl Line {
    /// Adds a future, at the place that it has or at the end. Returns the waker that it had there,
    /// whose drop runs user code.
    fn join(&mut self, place: &mut Option<Place>, waker: Waker) -> Option<Waker> {
        let place = *place.get_or_insert_with(|| {
            self.next += 1;
            Place(self.next)
        });
        self.waiting.insert(place, waker)
    }

    /// Removes a future. Returns `None` if it was woken.
    fn leave(&mut self, place: Place) -> Option<Waker> {
        self.waiting.remove(&place)
    }

    #[inline]
    pub(in crate::drive) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Removes and returns the wakers of the first futures, at most `most`.
    pub(in crate::drive) fn call(&mut self, most: usize) -> impl Iterator<Item = Waker> {
        std::iter::from_fn(|| self.waiting.pop_first()).map(|(_, waker)| waker).take(most)
    }
}

/// The threads that are blocked until the queue has room.
#[derive(Debug, Default)]
pub(in crate::drive) struct Blocked {
    threads: usize,
    /// Those that were notified and have not come yet. While it is not zero, a thread is coming:
    /// each of them takes one off when it comes, whether it was notified or its time is up.
    coming: usize,
    /// `true` while a thread collects outcomes until there is room, instead of being blocked.
    collects: bool,
}

impl Blocked {
    /// Returns `true` if the thread is to collect outcomes, because no other one does.
    pub(in crate::drive) fn begin_collecting(&mut self) -> bool {
        !std::mem::replace(&mut self.collects, true)
    }

    pub(in crate::drive) fn end_collecting(&mut self) {
        self.collects = false;
    }

    /// Returns `true` if a thread has to be notified so that one collects.
    fn call_collector(&mut self) -> bool {
        !self.collects && self.call(1) > 0
    }

    pub(in crate::drive) fn enter(&mut self) {
        self.threads += 1;
    }

    pub(in crate::drive) fn leave(&mut self) {
        self.threads -= 1;
        self.coming = self.coming.saturating_sub(1);
    }

    /// Returns the number of threads to notify, so that at most `most` are coming.
    fn call(&mut self, most: usize) -> usize {
        let called = self.threads.min(most).saturating_sub(self.coming);
        self.coming += called;
        called
    }
}

impl Shared {
    /// Submits a task, or takes the place in line and returns `Pending` if the queue is full.
    ///
    /// Call it until it returns `Ready`, and [`leave_line`](Self::leave_line) if that does not
    /// happen.
    pub(crate) fn poll_submit(
        &self,
        task: &TaskCell,
        retries: u32,
        constraints: &mut Option<Box<Constraints>>,
        place: &mut Option<Place>,
        waker: &Waker,
    ) -> Poll<Result<(), SubmitErrorKind>> {
        loop {
            match self.open_with_room(WhenFull::Fail) {
                Ok(mut core) => {
                    // Its waker is there if another cause than room made the future look.
                    let waker = place.take().and_then(|place| core.line_for_room.leave(place));
                    self.accept(core, task, task.clone(), None, retries, constraints.take());
                    drop(waker);
                    return Poll::Ready(Ok(()));
                }
                Err(SubmitErrorKind::Full) => {
                    if self.join_line(place, waker) {
                        return Poll::Pending;
                    }
                }
                Err(kind) => {
                    if let Some(span) = task.take_span() {
                        span.refuse(&kind);
                    }
                    return Poll::Ready(Err(kind));
                }
            }
        }
    }

    /// Returns `false` if the queue has room again, or the pool has ended.
    fn join_line(&self, place: &mut Option<Place>, waker: &Waker) -> bool {
        // Cloning runs user code, so it comes before the lock.
        let waker = waker.clone();
        let mut core = self.lock();
        if core.scheduler.has_room() || !core.scheduler.is_open() {
            drop(core);
            return false;
        }
        let replaced = core.line_for_room.join(place, waker);
        let mut deferred = Deferred::default();
        core.stop_relying_on_callers(self, &mut deferred);
        drop(core);
        drop(replaced);
        deferred.run(self);
        true
    }

    /// Gives up a place in line.
    pub(crate) fn leave_line(&self, place: Place) {
        if self.is_forked() {
            return;
        }
        let waker = self.with_core(|core, deferred| {
            let waker = core.line_for_room.leave(place);
            core.wake_waiters(self, deferred);
            waker
        });
        drop(waker);
    }
}

impl Core {
    /// Returns `true` if a thread or a future waits for room.
    #[inline]
    pub(in crate::drive) fn is_room_awaited(&self) -> bool {
        self.blocked.threads > 0
            || !self.line_for_room.is_empty()
            || !self.sleeping_for_room.is_empty()
    }

    /// Lets a thread that is blocked collect outcomes if nobody else does.
    #[inline]
    pub(in crate::drive) fn call_collector(&mut self, shared: &Shared) {
        if self.listeners.nobody_collects() && self.blocked.call_collector() {
            shared.room.notify_one();
        }
    }

    /// Wakes those that wait for room and can have it, or all if the pool has ended.
    pub(in crate::drive) fn wake_for_room(&mut self, shared: &Shared, deferred: &mut Deferred) {
        let (most, cores) = if self.scheduler.is_open() {
            (self.scheduler.room(), shared.cores)
        } else {
            (usize::MAX, usize::MAX)
        };
        if most == 0 {
            return;
        }
        let to_call = self.blocked.call(most.min(cores));
        if to_call > 0 {
            deferred.work().to_call += to_call;
        }
        for sleeper in self.sleeping_for_room.drain(..) {
            if sleeper.wake() {
                shared.ring_caller();
            }
        }
        if !self.line_for_room.is_empty() {
            deferred.work().to_wake.extend(self.line_for_room.call(most));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    #[test]
    fn no_more_threads_come_than_can_run() {
        let mut blocked = Blocked::default();
        assert_eq!(blocked.call(2), 0);
        (0..5).for_each(|_| blocked.enter());
        assert_eq!((blocked.call(2), blocked.call(2), blocked.call(3)), (2, 0, 1));
        blocked.leave();
        assert_eq!((blocked.call(2), blocked.call(3)), (0, 1));
        assert_eq!(blocked.call(usize::MAX), 1, "the pool has ended");
        (0..4).for_each(|_| blocked.leave());
        assert_eq!((blocked.threads, blocked.coming), (0, 0));
    }

    struct Ignores;

    impl Wake for Ignores {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn a_future_keeps_its_place() {
        let mut line = Line::default();
        let wakers: [Waker; 3] = std::array::from_fn(|_| Arc::new(Ignores).into());
        let mut places = [None; 3];
        for (place, waker) in places.iter_mut().zip(&wakers) {
            assert!(line.join(place, waker.clone()).is_none());
        }
        let is_called = |line: &mut Line, which: &[usize]| {
            let called: Vec<_> = line.call(which.len()).collect();
            called.iter().zip(which).all(|(waker, which)| waker.will_wake(&wakers[*which]))
        };
        assert!(is_called(&mut line, &[0]));
        assert!(line.join(&mut places[0], wakers[0].clone()).is_none());
        assert!(line.leave(places[1].unwrap()).is_some());
        assert!(is_called(&mut line, &[0, 2]));
        assert!(line.is_empty());
    }
}
