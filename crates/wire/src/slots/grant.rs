//! Grants: how many items a running task may emit. This is flow control by credits.
//!
//! The host writes one word per entry: twice the number of items that were granted to the attempt,
//! plus one if nothing more will be granted. The worker counts what it has emitted and sleeps on
//! the word itself. The kernel compares the word before it lets the worker sleep, so no grant is
//! missed. The host does not rely on the word: it counts the grants itself and checks each item
//! against them.

use std::sync::atomic::Ordering;

use brigade_sys::clock::{Monotonic, now};
use brigade_sys::futex;

use super::SlotTable;

/// Position of the grants, behind two words and a number of items for each entry.
const GRANTS: usize = 3;

/// The items that a task may emit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// Items with an index below this, counted from 0.
    UpTo(u64),
    /// Nothing: its items are not wanted any more.
    Closed,
}

impl Grant {
    fn to_word(self) -> u64 {
        match self {
            Self::UpTo(items) => items << 1,
            Self::Closed => 1,
        }
    }

    fn from_word(word: u64) -> Self {
        if word & 1 == 0 { Self::UpTo(word >> 1) } else { Self::Closed }
    }
}

impl SlotTable {
    /// Host: sets what a task may emit, before the task is sent.
    pub fn set_grant(&self, ring_index: u16, grant: Grant) {
        if let Some(word) = self.word(GRANTS, ring_index) {
            word.store(grant.to_word(), Ordering::Release);
        }
    }

    /// Host: changes what a task may emit, and wakes the worker if it waits for that.
    pub fn change_grant(&self, ring_index: u16, grant: Grant) {
        self.set_grant(ring_index, grant);
        if let Some(word) = self.word(GRANTS, ring_index) {
            futex::wake(word);
        }
    }

    /// Worker: blocks until the task may emit the item with this index, or nothing any more.
    /// Returns `None` if neither is the case at `deadline`.
    pub fn wait_for_grant(
        &self,
        ring_index: u16,
        index: u64,
        deadline: Option<Monotonic>,
    ) -> Option<Grant> {
        let word = self.word(GRANTS, ring_index)?;
        loop {
            let value = word.load(Ordering::Acquire);
            match Grant::from_word(value) {
                Grant::UpTo(items) if items <= index => {}
                grant => return Some(grant),
            }
            let left = deadline.map(|deadline| deadline.saturating_since(now()));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            futex::wait_for(word, value, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::super::tests::tables;
    use super::*;

    #[test]
    fn a_worker_waits_until_its_item_is_granted() {
        let (host, worker) = tables();
        host.set_grant(3, Grant::UpTo(1));
        assert_eq!(worker.wait_for_grant(3, 0, None), Some(Grant::UpTo(1)));
        thread::scope(|scope| {
            let waits = scope.spawn(|| worker.wait_for_grant(3, 2, None));
            host.change_grant(3, Grant::UpTo(2));
            host.change_grant(3, Grant::UpTo(3));
            assert_eq!(waits.join().expect("no panic"), Some(Grant::UpTo(3)));
            let waits = scope.spawn(|| worker.wait_for_grant(3, 3, None));
            host.change_grant(3, Grant::Closed);
            assert_eq!(waits.join().expect("no panic"), Some(Grant::Closed));
        });
    }

    #[test]
    fn a_wait_ends_at_its_deadline_and_outside_the_table() {
        let (host, worker) = tables();
        let soon = || Some(now().saturating_add(Duration::from_millis(2)));
        assert_eq!(worker.wait_for_grant(0, 0, soon()), None);
        host.set_grant(0, Grant::UpTo(1));
        assert_eq!(worker.wait_for_grant(0, 0, Some(now())), Some(Grant::UpTo(1)));
        assert_eq!(worker.wait_for_grant(4, 0, None), None, "there is no such entry");
    }

    #[test]
    fn any_word_is_a_grant() {
        for word in [0, 1, 2, 3, u64::MAX - 1, u64::MAX] {
            let grant = Grant::from_word(word);
            assert_eq!(grant == Grant::Closed, word & 1 == 1);
        }
        assert_eq!(Grant::from_word(Grant::UpTo(7).to_word()), Grant::UpTo(7));
    }
}
