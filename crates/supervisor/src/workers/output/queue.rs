//! The queue of the output thread: events to emit and output to forward, in order.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brigade_sys::sync::{Condvar, Mutex};

use super::pipe::Pipe;
use crate::workers::notes::Note;

/// Maximum number of entries. Further events are lost and counted.
const MAX_ENTRIES: usize = 4096;

/// Maximum number of bytes of dead workers. Anything beyond is lost and counted.
const MAX_BYTES: usize = 4 << 20;

/// The queue of the output thread.
#[derive(Default)]
pub(crate) struct OutputQueue {
    state: Mutex<QueueState>,
    /// Notified when an entry is done, and at the end.
    done: Condvar,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<Entry>,
    /// Not bounded here; see [`OutputQueue::keep`].
    kept: VecDeque<Note>,
    /// Number of bytes in the waiting entries.
    bytes: usize,
    lost: LostEntries,
    pushed: u64,
    done: u64,
    /// The last entry that a thread waits for.
    awaited: u64,
    ended: bool,
}

/// Work for the output thread.
pub(crate) enum Entry {
    Event(Note),
    /// The rest of the output in a dead worker's pipe.
    Rest(Arc<Pipe>, Vec<u8>),
}

/// Events and bytes that did not fit into the queue.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LostEntries {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

impl OutputQueue {
    /// Adds an event. Returns `true` if the output thread has to be woken.
    #[must_use]
    pub(crate) fn note(&self, note: Note) -> bool {
        let mut state = self.state.lock();
        if state.waiting.len() >= MAX_ENTRIES {
            state.lost.events += 1;
            return false;
        }
        state.push(Entry::Event(note))
    }

    /// Adds work that must not be lost. Those who cause it have to bound it, by means of
    /// [`next_surplus`](Self::next_surplus). Returns `true` if the output thread has to be woken,
    /// or the work if that thread has ended.
    pub(crate) fn keep(&self, note: Note) -> Result<bool, Note> {
        let mut state = self.state.lock();
        if state.ended {
            return Err(note);
        }
        state.kept.push_back(note);
        Ok(state.kept.len() == 1)
    }

    /// Takes work that must not be lost.
    pub(crate) fn next_kept(&self) -> Option<Note> {
        self.state.lock().kept.pop_front()
    }

    /// Takes work that must not be lost, if there is too much of it for the output thread.
    pub(crate) fn next_surplus(&self) -> Option<Note> {
        let mut state = self.state.lock();
        if state.kept.len() > MAX_ENTRIES { state.kept.pop_front() } else { None }
    }

    /// Adds the rests of pipes. Returns the number of the entry after which all of them have been
    /// forwarded.
    pub(crate) fn push_rests(&self, rests: Vec<(Arc<Pipe>, Vec<u8>)>, is_awaited: bool) -> u64 {
        let mut state = self.state.lock();
        for (pipe, mut bytes) in rests {
            let room = MAX_BYTES - state.bytes.min(MAX_BYTES);
            state.lost.bytes += bytes.len().saturating_sub(room) as u64;
            bytes.truncate(room);
            state.bytes += bytes.len();
            // Added even without bytes, because it ends the last line.
            let _ = state.push(Entry::Rest(pipe, bytes));
        }
        if is_awaited {
            state.awaited = state.pushed;
        }
        state.pushed
    }

    pub(crate) fn next(&self) -> Option<Entry> {
        let mut state = self.state.lock();
        let entry = state.waiting.pop_front()?;
        if let Entry::Rest(_, bytes) = &entry {
            state.bytes -= bytes.len();
        }
        Some(entry)
    }

    /// Marks the entry that was taken last as done. Returns `true` if a thread waits for it.
    #[must_use]
    pub(crate) fn done(&self) -> bool {
        let mut state = self.state.lock();
        state.done += 1;
        self.done.notify_all();
        state.done == state.awaited
    }

    pub(crate) fn take_lost(&self) -> Option<LostEntries> {
        let lost = mem::take(&mut self.state.lock().lost);
        (lost != LostEntries::default()).then_some(lost)
    }

    pub(crate) fn is_done(&self, entry: u64) -> bool {
        let state = self.state.lock();
        state.done >= entry || state.ended
    }

    /// Waits until an entry is done, for at most `bound`.
    pub(crate) fn wait_until_done(&self, entry: u64, bound: Duration) {
        let begin = Instant::now();
        let mut state = self.state.lock();
        while state.done < entry && !state.ended {
            let left = bound.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return;
            }
            state = self.done.wait_timeout(state, left).0;
        }
    }

    /// Records that the output thread has ended.
    pub(crate) fn end(&self) {
        self.state.lock().ended = true;
        self.done.notify_all();
    }
}

impl QueueState {
    /// Adds an entry. Returns `true` if the queue was empty.
    #[must_use]
    fn push(&mut self, entry: Entry) -> bool {
        self.pushed += 1;
        self.waiting.push_back(entry);
        self.waiting.len() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_events_are_bounded_and_lost_ones_counted() {
        let queue = OutputQueue::default();
        assert!(queue.note(Box::new(|_| ())), "the first entry wakes the thread");
        for _ in 1..MAX_ENTRIES {
            assert!(!queue.note(Box::new(|_| ())));
        }
        assert_eq!(queue.take_lost(), None);
        assert!(!queue.note(Box::new(|_| ())));
        assert_eq!(queue.take_lost(), Some(LostEntries { events: 1, bytes: 0 }));
        assert_eq!(queue.take_lost(), None, "reported once");
        for number in 1..=MAX_ENTRIES {
            assert!(!queue.is_done(number as u64));
            assert!(queue.next().is_some());
            assert!(!queue.done());
            assert!(queue.is_done(number as u64));
        }
        assert!(queue.next().is_none());
    }

    #[test]
    fn a_wait_for_an_entry_is_bounded_and_ends_with_the_thread() {
        let queue = OutputQueue::default();
        queue.wait_until_done(1, Duration::from_millis(1));
        assert!(!queue.is_done(1));
        queue.end();
        queue.wait_until_done(1, Duration::from_secs(60));
        assert!(queue.is_done(1));
    }

    #[test]
    fn kept_work_is_not_lost_and_a_surplus_is_offered() {
        let queue = OutputQueue::default();
        let keep = || queue.keep(Box::new(|_| ()));
        assert!(matches!(keep(), Ok(true)), "the first entry wakes the thread");
        for _ in 1..MAX_ENTRIES {
            assert!(matches!(keep(), Ok(false)));
        }
        assert!(queue.next_surplus().is_none());
        assert!(matches!(keep(), Ok(false)));
        assert!(queue.next_surplus().is_some());
        assert!(queue.next_surplus().is_none());
        assert_eq!(std::iter::from_fn(|| queue.next_kept()).count(), MAX_ENTRIES);
        queue.end();
        assert!(keep().is_err(), "nobody would do it");
    }
}
