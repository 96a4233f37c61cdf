//! What the console thread has to bring to code and streams of others, in its order.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::super::notes::Note;
use super::pipe::Pipe;

/// The most errands that wait; further events are lost, and counted.
const MOST: usize = 4096;

/// The most bytes of dead workers that wait; what is more is lost, and counted.
const MOST_BYTES: usize = 4 << 20;

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Errands {
    queue: Mutex<Queue>,
    /// Threads wait here for errands that are done, and for the end.
    done: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Errand>,
    /// In what waits.
    bytes: usize,
    lost: Lost,
    given: u64,
    done: u64,
    /// The last one whose end somebody waits for.
    awaited: u64,
    ended: bool,
}

/// One thing to do.
pub(super) enum Errand {
    Event(Note),
    /// What was left in the pipe of a dead worker.
    Rest(Arc<Pipe>, Vec<u8>),
}

/// What there was no room for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) events: u64,
    pub(super) bytes: u64,
}

impl Errands {
    /// Adds an event; true when the console thread is to be woken.
    #[must_use]
    pub(super) fn note(&self, note: Note) -> bool {
        let mut queue = self.lock();
        if queue.waiting.len() >= MOST {
            queue.lost.events += 1;
            return false;
        }
        queue.give(Errand::Event(note))
    }

    /// Adds what was left in pipes. The answer is the errand after which all of it has been passed on.
    pub(super) fn pass_on(&self, rests: Vec<(Arc<Pipe>, Vec<u8>)>, is_awaited: bool) -> u64 {
        let mut queue = self.lock();
        for (pipe, mut bytes) in rests {
            let room = MOST_BYTES - queue.bytes.min(MOST_BYTES);
            queue.lost.bytes += bytes.len().saturating_sub(room) as u64;
            bytes.truncate(room);
            queue.bytes += bytes.len();
            // Also without bytes: the last line ends here.
            let _ = queue.give(Errand::Rest(pipe, bytes));
        }
        if is_awaited {
            queue.awaited = queue.given;
        }
        queue.given
    }

    pub(super) fn next(&self) -> Option<Errand> {
        let mut queue = self.lock();
        let errand = queue.waiting.pop_front()?;
        if let Errand::Rest(_, bytes) = &errand {
            queue.bytes -= bytes.len();
        }
        Some(errand)
    }

    /// The errand that was taken last is done; true when somebody waits for one that is.
    #[must_use]
    pub(super) fn done(&self) -> bool {
        let mut queue = self.lock();
        queue.done += 1;
        self.done.notify_all();
        queue.done == queue.awaited
    }

    pub(super) fn take_lost(&self) -> Option<Lost> {
        let lost = mem::take(&mut self.lock().lost);
        (lost != Lost::default()).then_some(lost)
    }

    pub(super) fn is_done(&self, errand: u64) -> bool {
        let queue = self.lock();
        queue.done >= errand || queue.ended
    }

    /// Waits until an errand is done, not for longer than that.
    pub(super) fn wait_until_done(&self, errand: u64, bound: Duration) {
        let begin = Instant::now();
        let mut queue = self.lock();
        while queue.done < errand && !queue.ended {
            let left = bound.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return;
            }
            queue = self.done.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The console thread takes no errands any more.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.done.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Nothing that panics runs under this lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// True when nothing waited before.
    #[must_use]
    fn give(&mut self, errand: Errand) -> bool {
        self.given += 1;
        self.waiting.push_back(errand);
        self.waiting.len() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_nobody_takes_are_bounded_and_counted() {
        let errands = Errands::default();
        assert!(errands.note(Box::new(|_| ())), "the first one wakes");
        for _ in 1..MOST {
            assert!(!errands.note(Box::new(|_| ())));
        }
        assert_eq!(errands.take_lost(), None);
        assert!(!errands.note(Box::new(|_| ())));
        assert_eq!(errands.take_lost(), Some(Lost { events: 1, bytes: 0 }));
        assert_eq!(errands.take_lost(), None, "told once");
        for number in 1..=MOST {
            assert!(!errands.is_done(number as u64));
            assert!(errands.next().is_some());
            assert!(!errands.done());
            assert!(errands.is_done(number as u64));
        }
        assert!(errands.next().is_none());
    }

    #[test]
    fn a_wait_for_an_errand_has_a_bound_and_ends_with_the_thread() {
        let errands = Errands::default();
        errands.wait_until_done(1, Duration::from_millis(1));
        assert!(!errands.is_done(1));
        errands.end();
        errands.wait_until_done(1, Duration::from_secs(60));
        assert!(errands.is_done(1));
    }
}
