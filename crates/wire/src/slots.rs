//! The table of task states: one word for each task assigned to a worker, in memory that both sides
//! share.
//!
//! ```text
//!                      worker: begin
//! the word of the ------------------> Running(tag, round)
//! task before     ------------------> Revoked(tag, round)
//!                      host: revoke
//! ```
//!
//! To send a task, the host writes nothing here, so that the cache line stays with the worker. Both
//! sides count the tasks of an entry, which are sent and received in order, and so both know the
//! words that the next one may have. From the word of the task before, the worker (`begin`) and the
//! host (`revoke`) compete with one compare-and-swap each, so exactly one wins: a revoked task
//! never starts, and a task that has started cannot be revoked. No state follows *running*: the
//! outcome itself reports the end of the task, and only then does the host use the entry for
//! another one. The word stays readable after the worker's death, which is how the host knows what
//! was running.
//!
//! The start time is written before the swap (release) and read after the state (acquire). It is a
//! hint from a process that may lie, so only reports depend on it.
//!
//! For a chunk, a third word counts the items that have started; the worker raises it before each
//! item. After the worker's death the host compares the count with the outcomes that it has
//! received: at most one item has started without an outcome.
//!
//! For a task that emits items, a fourth word counts the items that it may emit; see [`Grant`].
//! Only the host writes it.
//!
//! Two more words hold the deadline of the section that the running task has entered. Worker and
//! host agree through these words alone: the worker notifies the host when they are set, and the
//! host looks at them when the section is due.
//!
//! A word that is neither that of the task before nor *running* with the right tag and round when
//! the host revokes the task is a breach of the protocol, unless the host itself had revoked the
//! task before. Such a word must not count as a start.

mod grant;
#[cfg(all(test, loom))]
mod loom;
mod word;

use std::sync::Arc;
use std::time::Duration;

use brigade_sys::clock::Monotonic;
use brigade_sys::segment::Segment;
use std::sync::atomic::{AtomicU64, Ordering};

pub use crate::ids::Revocation;
use crate::ids::{Attempt, TaskId};
pub use grant::Grant;

/// The state of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotState {
    /// Never used.
    Free,
    /// Sent and not started.
    Queued,
    /// Started.
    Running {
        /// The start time.
        since: Monotonic,
    },
    /// Revoked before it started.
    Revoked,
}

/// The table of task states, described at the [module](self). Host and worker each have one, over
/// the same memory.
#[derive(Debug, Clone)]
pub struct SlotTable {
    segment: Arc<Segment>,
    slots: u16,
    known: Arc<[Known]>,
}

/// The words of an entry that each task has.
struct Entry<'a> {
    state: &'a AtomicU64,
    since: &'a AtomicU64,
}

/// This side's knowledge of an entry. The host uses it under a lock of its own, and the worker on
/// the thread that runs tasks.
#[derive(Debug, Default)]
struct Known {
    /// The word of the task before: running, or revoked.
    before: AtomicU64,
    /// The word of the current task: running, unless it was revoked.
    current: AtomicU64,
}

impl Known {
    /// Goes on to the next task and returns its word.
    #[inline]
    fn next(&self, tag: u32) -> u64 {
        let last = self.current.load(Ordering::Relaxed);
        let running = word::running(tag, last);
        self.before.store(last, Ordering::Relaxed);
        self.current.store(running, Ordering::Relaxed);
        running
    }

    fn before(&self) -> u64 {
        self.before.load(Ordering::Relaxed)
    }

    fn current(&self) -> u64 {
        self.current.load(Ordering::Relaxed)
    }
}

/// A section of a task that must end in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// The time by which it must have ended.
    pub due: Monotonic,
    /// The duration that it may take.
    pub limit: Duration,
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the tag that distinguishes two tasks in the same entry.
#[inline]
pub fn slot_tag(task: TaskId, attempt: Attempt) -> u32 {
    let [a, b, c, d, ..] = task.get().to_le_bytes();
    u32::from_le_bytes([a, b, c, d]) ^ attempt.get().rotate_left(24)
}

impl SlotTable {
    /// Returns the number of words that a table of `slots` entries needs: a state, a time, an item
    /// count and a grant for each, and two for the section of the running task.
    pub const fn words(slots: u16) -> usize {
        slots as usize * 4 + 2
    }

    /// Creates a table over a segment of `words(slots)` words.
    ///
    /// # Panics
    /// If the segment is too short.
    pub fn new(segment: impl Into<Arc<Segment>>, slots: u16) -> Self {
        let segment = segment.into();
        assert!(
            segment.words().len() >= Self::words(slots),
            "the segment is too short for {slots} entries"
        );
        let known = std::iter::repeat_with(Known::default).take(slots.into()).collect();
        Self { segment, slots, known }
    }

    /// Host: uses the entry for another task, before the task is sent.
    #[inline]
    pub fn arm(&self, ring_index: u16, tag: u32) {
        if let Some(known) = self.known.get(usize::from(ring_index)) {
            known.next(tag);
        }
    }

    /// Host: before the task is sent, resets the number of items that have started.
    pub fn reset_items(&self, ring_index: u16) {
        if let Some(items) = self.items(ring_index) {
            items.store(0, Ordering::Relaxed);
        }
    }

    /// Host: returns the number of items of a chunk that have started.
    pub fn begun_items(&self, ring_index: u16) -> u64 {
        self.items(ring_index).map_or(0, |items| items.load(Ordering::Acquire))
    }

    /// Worker: sets the number of items of the chunk that have started, including the one about to
    /// run.
    #[inline]
    pub fn begin_item(&self, ring_index: u16, count: u64) {
        if let Some(items) = self.items(ring_index) {
            items.store(count, Ordering::Release);
        }
    }

    /// Host: revokes the task of the entry, whose tag is `tag`.
    pub fn revoke(&self, ring_index: u16, tag: u32) -> Revocation {
        let Some((entry, known)) = self.of_task(ring_index, tag) else {
            return Revocation::Neither;
        };
        let (before, current) = (known.before(), known.current());
        if word::is_revoked(current) {
            return Revocation::Neither;
        }
        let found = word::revoke(entry.state, before, current);
        if found == Revocation::Revoked {
            known.current.store(word::revoked(current), Ordering::Relaxed);
        }
        found
    }

    /// Host: returns the state of the entry.
    pub fn state(&self, ring_index: u16) -> SlotState {
        let Some((entry, known)) = self.entry(ring_index) else { return SlotState::Free };
        let (before, current) = (known.before(), known.current());
        match entry.state.load(Ordering::Acquire) {
            _ if current == before => SlotState::Free,
            state if state == before => SlotState::Queued,
            state if state != current => SlotState::Free,
            state if word::is_revoked(state) => SlotState::Revoked,
            _ => {
                let since = Monotonic::from_nanos(entry.since.load(Ordering::Relaxed));
                SlotState::Running { since }
            }
        }
    }

    /// Host, after the worker's death: returns `true` if the task may have started. Only the word
    /// of the task before proves that it has not; an overwritten word proves nothing.
    pub fn may_have_begun(&self, ring_index: u16, tag: u32) -> bool {
        self.of_task(ring_index, tag)
            .is_none_or(|(entry, known)| entry.state.load(Ordering::Acquire) != known.before())
    }

    /// Worker: starts the next task of the entry. Returns `false` if the task was revoked or the
    /// table has no such entry. Call it once for each task, in the order in which they arrive.
    #[inline]
    pub fn begin(&self, ring_index: u16, tag: u32, now: Monotonic) -> bool {
        self.entry(ring_index).is_some_and(|(entry, known)| {
            let running = known.next(tag);
            entry.since.store(now.as_nanos(), Ordering::Relaxed);
            word::begin(entry.state, running)
        })
    }

    /// Worker: sets the deadline and the limit of the section that the running task is in; `None`
    /// if it is in no section.
    pub fn set_section(&self, section: Option<Section>) {
        let [due, limit] = self.section_words();
        limit.store(section.map_or(0, |section| nanos(section.limit)), Ordering::Relaxed);
        due.store(section.map_or(0, |section| section.due.as_nanos().max(1)), Ordering::Release);
    }

    /// Host: returns the section that the running task is in.
    pub fn section(&self) -> Option<Section> {
        let [due, limit] = self.section_words();
        let due = due.load(Ordering::Acquire);
        (due != 0).then(|| Section {
            due: Monotonic::from_nanos(due),
            limit: Duration::from_nanos(limit.load(Ordering::Relaxed)),
        })
    }

    fn section_words(&self) -> [&AtomicU64; 2] {
        let index = usize::from(self.slots) * 4;
        let words = self.segment.words();
        [&words[index], &words[index + 1]]
    }

    #[inline]
    fn items(&self, ring_index: u16) -> Option<&AtomicU64> {
        let index = usize::from(self.slots) * 2 + usize::from(ring_index);
        (ring_index < self.slots).then(|| &self.segment.words()[index])
    }

    #[inline]
    fn grant(&self, ring_index: u16) -> Option<&AtomicU64> {
        let index = usize::from(self.slots) * 3 + usize::from(ring_index);
        (ring_index < self.slots).then(|| &self.segment.words()[index])
    }

    /// Returns the entry, if its current task has this tag.
    fn of_task(&self, ring_index: u16, tag: u32) -> Option<(Entry<'_>, &Known)> {
        self.entry(ring_index).filter(|(_, known)| word::has_tag(known.current(), tag))
    }

    /// Returns `None` for an index beyond the table: it may come from another process.
    #[inline]
    fn entry(&self, ring_index: u16) -> Option<(Entry<'_>, &Known)> {
        let known = self.known.get(usize::from(ring_index))?;
        let index = usize::from(ring_index) * 2;
        let words = self.segment.words();
        Some((Entry { state: &words[index], since: &words[index + 1] }, known))
    }
}

#[cfg(test)]
mod tests;
