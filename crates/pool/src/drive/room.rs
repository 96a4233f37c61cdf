//! Waiting for room in the queue, as a future.
//!
//! Protocol (under the core's lock): a future that finds the queue full takes a place in line, in
//! the same step. After each event, as many futures are woken as the queue has room for, in the
//! order of their places. Room is not reserved for them: a future that finds the queue full again
//! goes back to its place. One that is dropped after it was woken wakes the next one.

use std::collections::BTreeMap;
use std::task::{Poll, Waker};

use brigade_scheduler::Constraints;

use super::deferred::Deferred;
use super::shared::{Core, Shared};
use crate::cell::TaskCell;
use crate::error::SubmitErrorKind;
use crate::pool::WhenFull;

/// A place in the line for room in the queue; lower ones come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u64);

/// The wakers of the futures that wait for room, by place.
#[derive(Debug, Default)]
pub(super) struct Line {
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
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Removes and returns the wakers of the first futures, at most `most`.
    pub(super) fn call(&mut self, most: usize) -> impl Iterator<Item = Waker> {
        std::iter::from_fn(|| self.waiting.pop_first()).map(|(_, waker)| waker).take(most)
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
                    self.accept(core, task, None, retries, constraints.take());
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
        drop(core);
        drop(replaced);
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
    /// Wakes those that wait for room, if there is some or the pool has ended: all threads, and the
    /// futures that find room.
    pub(super) fn wake_for_room(&mut self, shared: &Shared, deferred: &mut Deferred) {
        let most = if self.scheduler.is_open() { self.scheduler.room() } else { usize::MAX };
        if most == 0 {
            return;
        }
        shared.room.notify_all();
        for sleeper in self.sleeping_for_room.drain(..) {
            if sleeper.wake() {
                shared.ring_caller();
            }
        }
        deferred.to_wake.extend(self.line_for_room.call(most));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

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
