//! The table of task states: one word for each task under way to a worker, in memory that both sides share.
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
//! Who may touch what: the host alone arms, and arms a slot again only after the worker has answered the task that was in
//! it. From *queued* the worker (`begin`) and the host (`revoke`) compete with one compare-and-swap each, so exactly one
//! wins: a task that was revoked never begins, and one that has begun cannot be revoked. Nothing
//! follows on *running*: that the task has ended is told by its answer, and only then does the host arm the slot again. (A
//! state *done* would be written after the answer was sent, and could hit a slot that is armed again already.) The word
//! stays readable after the worker's death, which is how the host knows what ran.
//!
//! The time of the begin is written before the swap (release) and read after the state (acquire); it is a hint of a process
//! that may lie, and nothing but reports depends on it.
//!
//! For a chunk of items a third word counts those that have begun; the worker raises it before each. After a death the
//! host compares it with the items that were answered: at most one has begun and was not.
//!
//! Two more words say until when the part must have ended that the running task has put a limit on. Worker and host agree by
//! these words alone: the worker sends word when they are set, and the host looks at them when the time has come.
//!
//! A word that is neither *queued* nor *running* with the right tag when the host takes the task back is a breach of the
//! protocol, unless the host itself had taken it back before: it must not pass for a begin.
//!
//! The tag makes each arming distinct: a worker that is handed an old message finds another tag and passes over it.

#[cfg(all(test, loom))]
mod loom;
mod word;

use std::sync::Arc;
use std::time::Duration;

use brigade_sys::clock::Monotonic;
use brigade_sys::segment::Segment;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ids::{Attempt, TaskId};

/// The state of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotState {
    /// Never used.
    Free,
    /// Sent and not begun.
    Queued,
    /// Begun.
    Running {
        /// When.
        since: Monotonic,
    },
    /// Taken back before it began.
    Revoked,
}

/// What came of taking a task back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Revocation {
    /// It never begins.
    Revoked,
    /// The worker has begun it.
    Begun,
    /// The word says neither that the task is there nor that it has begun. It was taken back before, or the worker wrote
    /// over it.
    Neither,
}

/// See the module's documentation. Both sides have one, over the same memory.
#[derive(Debug, Clone)]
pub struct SlotTable {
    segment: Arc<Segment>,
    slots: u16,
}

/// A part of a task that must end in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// When it must have ended.
    pub due: Monotonic,
    /// How long it may take.
    pub limit: Duration,
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What tells two tasks in the same slot apart.
pub fn slot_tag(task: TaskId, attempt: Attempt) -> u32 {
    let [a, b, c, d, ..] = task.get().to_le_bytes();
    u32::from_le_bytes([a, b, c, d]) ^ attempt.get().rotate_left(24)
}

impl SlotTable {
    /// The words that a segment for so many slots needs: a state and a time each, then a number of items each, then two for
    /// the section that the running task is in.
    pub const fn words(slots: u16) -> usize {
        slots as usize * 3 + 2
    }

    /// A table over a segment of `words(slots)` words.
    ///
    /// # Panics
    /// When the segment is too short.
    pub fn new(segment: impl Into<Arc<Segment>>, slots: u16) -> Self {
        let segment = segment.into();
        assert!(
            segment.words().len() >= Self::words(slots),
            "the segment is too short for {slots} slots"
        );
        Self { segment, slots }
    }

    /// Host: a task is about to be sent for this slot.
    #[inline]
    pub fn arm(&self, slot: u16, tag: u32) {
        if let Some((state, _)) = self.slot(slot) {
            word::arm(state, tag);
        }
    }

    /// Host: before `arm`, for a chunk: none of its items has begun.
    pub fn reset_items(&self, slot: u16) {
        if let Some(items) = self.items(slot) {
            items.store(0, Ordering::Relaxed);
        }
    }

    /// Host: how many items of a chunk have begun.
    pub fn begun_items(&self, slot: u16) -> u64 {
        self.items(slot).map_or(0, |items| items.load(Ordering::Acquire))
    }

    /// Worker: so many items of the chunk have begun, the one that is about to run included.
    #[inline]
    pub fn begin_item(&self, slot: u16, count: u64) {
        if let Some(items) = self.items(slot) {
            items.store(count, Ordering::Release);
        }
    }

    /// Host: takes the task back.
    pub fn revoke(&self, slot: u16, tag: u32) -> Revocation {
        self.slot(slot).map_or(Revocation::Neither, |(state, _)| word::revoke(state, tag))
    }

    /// Host: what is in the slot.
    pub fn state(&self, slot: u16) -> SlotState {
        let Some((state, since)) = self.slot(slot) else {
            return SlotState::Free;
        };
        match word::read(state) {
            word::QUEUED => SlotState::Queued,
            word::RUNNING => {
                SlotState::Running { since: Monotonic::from_nanos(since.load(Ordering::Relaxed)) }
            }
            word::REVOKED => SlotState::Revoked,
            _ => SlotState::Free,
        }
    }

    /// Host, of a worker that is dead: whether the task may have begun. Only a word that still says *queued*, for this very
    /// task, says that it has not; one that was written over says nothing.
    pub fn may_have_begun(&self, slot: u16, tag: u32) -> bool {
        !self.slot(slot).is_some_and(|(state, _)| word::is_queued(state, tag))
    }

    /// Worker: begins the task. False when it was taken back, or there is no such slot.
    #[inline]
    pub fn begin(&self, slot: u16, tag: u32, now: Monotonic) -> bool {
        self.slot(slot).is_some_and(|(state, since)| {
            since.store(now.as_nanos(), Ordering::Relaxed);
            word::begin(state, tag)
        })
    }

    /// Worker: when the section that the running task is in must have ended, and how long it may take; `None` when it is in
    /// none.
    pub fn set_section(&self, section: Option<Section>) {
        let [due, limit] = self.section_words();
        limit.store(section.map_or(0, |section| nanos(section.limit)), Ordering::Relaxed);
        due.store(section.map_or(0, |section| section.due.as_nanos().max(1)), Ordering::Release);
    }

    /// Host: the section that the running task is in.
    pub fn section(&self) -> Option<Section> {
        let [due, limit] = self.section_words();
        let due = due.load(Ordering::Acquire);
        (due != 0).then(|| Section {
            due: Monotonic::from_nanos(due),
            limit: Duration::from_nanos(limit.load(Ordering::Relaxed)),
        })
    }

    fn section_words(&self) -> [&AtomicU64; 2] {
        let index = usize::from(self.slots) * 3;
        let words = self.segment.words();
        [&words[index], &words[index + 1]]
    }

    #[inline]
    fn items(&self, slot: u16) -> Option<&AtomicU64> {
        let index = usize::from(self.slots) * 2 + usize::from(slot);
        (slot < self.slots).then(|| &self.segment.words()[index])
    }

    /// `None` for a slot beyond the table: the number may come from another process.
    #[inline]
    fn slot(&self, slot: u16) -> Option<(&AtomicU64, &AtomicU64)> {
        if slot >= self.slots {
            return None;
        }
        let index = usize::from(slot) * 2;
        let words = self.segment.words();
        Some((&words[index], &words[index + 1]))
    }
}

#[cfg(test)]
mod tests {
    use brigade_sys::clock::now;
    use std::os::fd::AsFd;

    use super::*;

    fn tables() -> (SlotTable, SlotTable) {
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
        assert_eq!(host.state(3), SlotState::Free);
        host.arm(3, 7);
        assert_eq!(host.state(3), SlotState::Queued);
        let time = now();
        assert!(worker.begin(3, 7, time));
        assert_eq!(host.state(3), SlotState::Running { since: time });
        assert_eq!(host.revoke(3, 7), Revocation::Begun);
        host.arm(3, 8);
        assert_eq!(
            host.state(3),
            SlotState::Queued,
            "the answer was received and the slot is used again"
        );
    }

    #[test]
    fn a_revoked_task_does_not_begin() {
        let (host, worker) = tables();
        host.arm(0, 7);
        assert_eq!(host.revoke(0, 7), Revocation::Revoked);
        assert!(!worker.begin(0, 7, now()));
        assert_eq!(host.state(0), SlotState::Revoked);
    }

    #[test]
    fn a_word_that_was_written_over_is_no_begin() {
        let (host, worker) = tables();
        for garbage in [0, 0xa5a5_a5a5_a5a5_a5a5, u64::MAX] {
            host.arm(0, 7);
            worker.segment.words()[0].store(garbage, Ordering::Relaxed);
            assert_eq!(host.revoke(0, 7), Revocation::Neither);
        }
        host.arm(0, 7);
        assert_eq!(host.revoke(0, 7), Revocation::Revoked);
        assert_eq!(host.revoke(0, 7), Revocation::Neither, "it was taken back before");
    }

    #[test]
    fn only_the_word_for_this_very_task_says_that_it_has_not_begun() {
        let (host, worker) = tables();
        host.arm(0, 7);
        assert!(!host.may_have_begun(0, 7));
        assert!(host.may_have_begun(0, 8) && host.may_have_begun(1, 7));
        assert!(worker.begin(0, 7, now()));
        assert!(host.may_have_begun(0, 7));
    }

    #[test]
    fn another_tag_is_another_task() {
        let (host, worker) = tables();
        host.arm(0, 7);
        assert!(!worker.begin(0, 8, now()));
        assert_eq!(host.revoke(0, 8), Revocation::Neither);
        assert_eq!(host.state(0), SlotState::Queued);
    }

    #[test]
    fn the_host_sees_how_many_items_of_a_chunk_have_begun() {
        let (host, worker) = tables();
        worker.begin_item(3, 9);
        host.reset_items(3);
        host.arm(3, 7);
        assert_eq!(host.begun_items(3), 0);
        assert!(worker.begin(3, 7, now()));
        worker.begin_item(3, 2);
        assert_eq!((host.begun_items(3), host.begun_items(2)), (2, 0));
        worker.begin_item(4, 1);
        assert_eq!(host.begun_items(4), 0, "there is no such slot");
    }

    #[test]
    fn slots_beyond_the_table_are_harmless() {
        let (host, worker) = tables();
        host.arm(4, 1);
        assert!(!worker.begin(4, 1, now()));
        assert_eq!(host.revoke(u16::MAX, 1), Revocation::Neither);
        assert_eq!(host.state(4), SlotState::Free);
    }
}
