//! The table of task states: one word for each task assigned to a worker, in memory that both sides
//! share.
//!
//! Two processes agree on who has a task by one compare-and-swap of its word. A tag in the word
//! tells the tasks of an entry apart, against ABA.
//!
//! ```text
//!            host: arm                 worker: begin
//! (anything) ---------> Queued(tag) ------------------> Running(tag)
//!                           |
//!                           | host: revoke
//!                           v
//!                       Revoked(tag)
//! ```
//!
//! Access rules: only the host arms an entry, and it arms the entry again only after the worker has
//! sent the outcome of the task in it. From *queued* the worker (`begin`) and the host (`revoke`)
//! compete with one compare-and-swap each, so exactly one wins: a revoked task never starts, and a
//! task that has started cannot be revoked. No state follows *running*: the outcome itself reports
//! the end of the task, and only then does the host arm the entry again. (A state *done* would have
//! to be written after the outcome was sent, and could hit an entry that is already armed again.)
//! The word stays readable after the worker's death, which is how the host knows what was running.
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
//! One word for all entries says which function runs; see the module `present`.
//!
//! Two more words hold the deadline of the section that the running task has entered. Worker and
//! host agree through these words alone: the worker notifies the host when they are set, and the
//! host looks at them when the section is due.
//!
//! A word that is neither *queued* nor *running* with the right tag when the host revokes the task
//! is a breach of the protocol, unless the host itself had revoked the task before. Such a word
//! must not count as a start.
//!
//! The tag makes each arming distinct: a worker that receives an outdated message finds another tag
//! and skips it.

mod grant;
#[cfg(all(test, loom))]
mod loom;
mod present;
mod word;

use std::sync::Arc;
use std::time::Duration;

use brigade_sys::clock::Monotonic;
use brigade_sys::fetch::fetch_for_writing;
use brigade_sys::segment::Segment;
use std::sync::atomic::{AtomicU64, Ordering};

pub use brigade_base::Revocation;
use brigade_base::{Attempt, TaskId};
pub use grant::Grant;
pub use present::leave;

/// The table of task states, described at the [module](self). Host and worker each have one, over
/// the same memory.
#[derive(Debug, Clone)]
pub struct SlotTable {
    segment: Arc<Segment>,
    slots: u16,
}

/// The number of items of a chunk that have started. See [`SlotTable::item_count`].
#[derive(Debug)]
pub struct ItemCount<'a>(Option<&'a AtomicU64>);

impl ItemCount<'_> {
    /// Sets the number, including the item that is about to run.
    #[inline]
    pub fn set(&self, count: u64) {
        if let Some(items) = self.0 {
            items.store(count, Ordering::Release);
        }
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

/// Position of the numbers of items, behind two words for each entry.
const ITEMS: usize = 2;

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
    /// count and a grant for each, two for the section of the running task, and one for the
    /// function that runs.
    pub const fn words(slots: u16) -> usize {
        slots as usize * 4 + 3
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
        Self { segment, slots }
    }

    /// Host: marks a task as queued, before the task is sent.
    #[inline]
    pub fn arm(&self, ring_index: u16, tag: u32) {
        if let Some((state, _)) = self.words_of(ring_index) {
            word::arm(state, tag);
        }
        // Four entries share a cache line, and the worker has had the next one.
        if let Some((next, _)) = self.words_of(ring_index.wrapping_add(4)) {
            fetch_for_writing(next);
        }
    }

    /// Host: before `arm`, resets the number of items that have started.
    pub fn reset_items(&self, ring_index: u16) {
        self.item_count(ring_index).set(0);
    }

    /// Host: returns the number of items of a chunk that have started.
    pub fn begun_items(&self, ring_index: u16) -> u64 {
        self.word(ITEMS, ring_index).map_or(0, |items| items.load(Ordering::Acquire))
    }

    /// Worker: returns the number of items of a chunk that have started, to be set.
    pub fn item_count(&self, ring_index: u16) -> ItemCount<'_> {
        ItemCount(self.word(ITEMS, ring_index))
    }

    /// Host: revokes the task.
    pub fn revoke(&self, ring_index: u16, tag: u32) -> Revocation {
        self.words_of(ring_index).map_or(Revocation::Neither, |(state, _)| word::revoke(state, tag))
    }

    /// Host: returns the time at which the task of the entry began, if it has begun.
    pub fn running_since(&self, ring_index: u16) -> Option<Monotonic> {
        let (state, since) = self.words_of(ring_index)?;
        let is_running = word::read(state) == word::RUNNING;
        is_running.then(|| Monotonic::from_nanos(since.load(Ordering::Relaxed)))
    }

    /// Host, after the worker's death: returns `true` if the task may have started. Only a word
    /// that still says *queued* for this very task proves that it has not; an overwritten word
    /// proves nothing.
    pub fn may_have_begun(&self, ring_index: u16, tag: u32) -> bool {
        !self.words_of(ring_index).is_some_and(|(state, _)| word::is_queued(state, tag))
    }

    /// Worker: fetches the state word behind that of `ring_index`, the last task. Call it as soon
    /// as there is a message: the next task has that word, the host has just written it, and it
    /// takes as long to come as the message did.
    #[inline]
    pub fn fetch_behind(&self, ring_index: u16) {
        let next = ring_index.wrapping_add(1);
        let next = if next < self.slots { next } else { 0 };
        if let Some((state, _)) = self.words_of(next) {
            fetch_for_writing(state);
        }
    }

    /// Worker: starts the task. Returns `false` if the task was revoked or the table has no such
    /// entry.
    #[inline]
    pub fn begin(&self, ring_index: u16, tag: u32, now: Monotonic) -> bool {
        self.words_of(ring_index).is_some_and(|(state, since)| {
            since.store(now.as_nanos(), Ordering::Relaxed);
            self.enter(ring_index, tag);
            word::begin(state, tag)
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

    /// Returns the word of an entry in the array with this position.
    #[inline]
    fn word(&self, array: usize, ring_index: u16) -> Option<&AtomicU64> {
        let index = usize::from(self.slots) * array + usize::from(ring_index);
        (ring_index < self.slots).then(|| &self.segment.words()[index])
    }

    /// Returns `None` for an index beyond the table: it may come from another process.
    #[inline]
    fn words_of(&self, ring_index: u16) -> Option<(&AtomicU64, &AtomicU64)> {
        if ring_index >= self.slots {
            return None;
        }
        let index = usize::from(ring_index) * 2;
        let words = self.segment.words();
        Some((&words[index], &words[index + 1]))
    }
}

#[cfg(test)]
mod tests {
    use brigade_sys::clock::now;
    use std::os::fd::AsFd;

    use super::*;

    pub(super) fn tables() -> (SlotTable, SlotTable) {
        let host = Segment::create("test", SlotTable::words(4)).expect("a segment");
        let other = host.as_fd().try_clone_to_owned().expect("a descriptor");
        let worker = Segment::open(other, SlotTable::words(4)).expect("the same segment");
        (SlotTable::new(host, 4), SlotTable::new(worker, 4))
    }

    #[test]
    fn the_host_sees_the_section_that_the_worker_is_in() {
        let (host, worker) = tables();
        assert_eq!(host.section(), None);
        let section = Section { due: now(), limit: Duration::from_millis(7) };
        worker.set_section(Some(section));
        assert_eq!(host.section(), Some(section));
        worker.set_section(None);
        assert_eq!(host.section(), None);
    }

    #[test]
    fn the_host_sees_when_a_task_began_and_ended() {
        let (host, worker) = tables();
        assert_eq!(host.running_since(3), None);
        host.arm(3, 7);
        assert_eq!(host.running_since(3), None);
        let time = now();
        assert!(worker.begin(3, 7, time));
        assert_eq!(host.running_since(3), Some(time));
        assert_eq!(host.revoke(3, 7), Revocation::Begun);
        host.arm(3, 8);
        let text = "the outcome was received and the entry is in use again";
        assert_eq!(host.running_since(3), None, "{text}");
    }

    #[test]
    fn a_revoked_task_does_not_begin() {
        let (host, worker) = tables();
        host.arm(0, 7);
        assert_eq!(host.revoke(0, 7), Revocation::Revoked);
        assert!(!worker.begin(0, 7, now()));
        assert_eq!(host.running_since(0), None);
    }

    #[test]
    fn an_overwritten_word_is_not_a_start() {
        let (host, worker) = tables();
        for garbage in [0, 0xa5a5_a5a5_a5a5_a5a5, u64::MAX] {
            host.arm(0, 7);
            worker.segment.words()[0].store(garbage, Ordering::Relaxed);
            assert_eq!(host.revoke(0, 7), Revocation::Neither);
        }
        host.arm(0, 7);
        assert_eq!(host.revoke(0, 7), Revocation::Revoked);
        assert_eq!(host.revoke(0, 7), Revocation::Neither, "it was revoked before");
    }

    #[test]
    fn only_the_word_of_this_very_task_proves_that_it_has_not_begun() {
        let (host, worker) = tables();
        host.arm(0, 7);
        assert!(!host.may_have_begun(0, 7));
        assert!(host.may_have_begun(0, 8) && host.may_have_begun(1, 7));
        assert!(worker.begin(0, 7, now()));
        assert!(host.may_have_begun(0, 7));
    }

    #[test]
    fn a_task_begins_once_even_if_its_message_comes_again() {
        let (host, worker) = tables();
        host.arm(0, 7);
        assert!(worker.begin(0, 7, now()));
        assert!(!worker.begin(0, 7, now()));
        host.arm(0, 8);
        assert!(!worker.begin(0, 7, now()));
    }

    #[test]
    fn a_task_whose_word_was_zeroed_counts_as_begun() {
        let (host, worker) = tables();
        host.arm(0, 7);
        assert!(worker.begin(0, 7, now()));
        worker.segment.words()[0].store(0, Ordering::Relaxed);
        assert!(host.may_have_begun(0, 7));
    }

    #[test]
    fn a_task_with_another_tag_does_not_begin() {
        let (host, worker) = tables();
        host.arm(0, 7);
        assert!(!worker.begin(0, 8, now()));
        assert_eq!(host.revoke(0, 8), Revocation::Neither);
        assert!(!host.may_have_begun(0, 7));
    }

    #[test]
    fn the_host_sees_how_many_items_of_a_chunk_have_begun() {
        let (host, worker) = tables();
        worker.item_count(3).set(9);
        host.reset_items(3);
        host.arm(3, 7);
        assert_eq!(host.begun_items(3), 0);
        assert!(worker.begin(3, 7, now()));
        worker.item_count(3).set(2);
        assert_eq!((host.begun_items(3), host.begun_items(2)), (2, 0));
        worker.item_count(4).set(1);
        assert_eq!(host.begun_items(4), 0, "there is no such entry");
    }

    #[test]
    fn an_index_beyond_the_table_is_harmless() {
        let (host, worker) = tables();
        host.arm(4, 1);
        assert!(!worker.begin(4, 1, now()));
        assert_eq!(host.revoke(u16::MAX, 1), Revocation::Neither);
        assert_eq!(host.running_since(4), None);
    }
}
