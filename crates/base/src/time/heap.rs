//! A timer queue: an indexed 4-ary heap. Each node has four children, and each timer a slot that
//! knows its position.
//!
//! The heap holds the deadlines, so that finding the next one touches nothing else. The slots hold
//! the values, and keys name slots. When an entry moves in the heap, its slot's position is
//! updated; cancelling depends on that.
//!
//! The alternative was a timer wheel. It arms in constant time, but knows the next deadline only to
//! the width of a slot, and wakes its owner for cascades in which nothing fires. Here the next
//! deadline is the first entry, and exact. Timers that are armed in the order of their deadlines,
//! which most are, do not move at all.

use crate::time::Monotonic;

/// Identifies a timer of one [`TimerHeap`]. A key is never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimerKey {
    slot: u32,
    generation: u32,
}

/// A timer whose deadline has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fired<T, I = Monotonic> {
    /// The key that [`TimerHeap::arm`] returned.
    pub key: TimerKey,
    /// The timer's deadline.
    pub deadline: I,
    /// The value that was armed.
    pub value: T,
}

/// A set of timers, ordered by deadline.
///
/// `I` is a point in time: [`Monotonic`], or a number of any unit and origin. The heap reads no
/// clock, allocates only when its two vectors grow, and is deterministic: the same calls return
/// the same results.
///
/// Arming, moving and cancelling take O(log n), and O(1) in the usual orders. The next deadline
/// takes O(1). Timers with equal deadlines fire in an order that depends on the calls made.
///
/// ```
/// use brigade_base::TimerHeap;
///
/// let mut timers = TimerHeap::new();
/// let late = timers.arm(30, "late");
/// timers.arm(20, "early");
/// assert_eq!(timers.next_deadline(), Some(20));
/// assert!(timers.expire(19).is_none(), "never early");
/// assert_eq!(timers.expire(20).map(|fired| fired.value), Some("early"));
/// assert_eq!(timers.cancel(late), Some("late"));
/// assert_eq!(timers.next_deadline(), None);
/// ```
#[derive(Debug, Clone)]
pub struct TimerHeap<T, I = Monotonic> {
    heap: Vec<Entry<I>>,
    slots: Vec<HeapSlot<T>>,
    /// Head of the list of free slots.
    first_free: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Entry<I> {
    deadline: I,
    slot: u32,
}

#[derive(Debug, Clone)]
struct HeapSlot<T> {
    generation: u32,
    content: Content<T>,
}

#[derive(Debug, Clone)]
enum Content<T> {
    Armed { position: u32, value: T },
    Free { next: Option<u32> },
}

/// Children of a node. Four entries of 16 bytes fill a cache line, and the tree is half as deep as
/// a binary one.
const CHILDREN: usize = 4;

impl<T, I> TimerHeap<T, I> {
    /// Creates an empty heap.
    pub const fn new() -> Self {
        Self { heap: Vec::new(), slots: Vec::new(), first_free: None }
    }

    /// Returns the number of armed timers.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Returns `true` if no timer is armed.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<T, I: Copy + Ord> TimerHeap<T, I> {
    /// Arms a timer that fires from `deadline` on.
    ///
    /// # Panics
    /// If 2³² timers are armed.
    pub fn arm(&mut self, deadline: I, value: T) -> TimerKey {
        let position = self.heap.len();
        let content = Content::Armed { position: narrow(position), value };
        let slot = if let Some(slot) = self.first_free {
            let free = &mut self.slots[slot as usize];
            if let Content::Free { next } = free.content {
                self.first_free = next;
            }
            free.content = content;
            slot
        } else {
            self.slots.push(HeapSlot { generation: 0, content });
            narrow(self.slots.len() - 1)
        };
        self.heap.push(Entry { deadline, slot });
        self.sift_up(position);
        TimerKey { slot, generation: self.slots[slot as usize].generation }
    }

    /// Changes a timer's deadline. Returns `false` if it has fired or was cancelled.
    pub fn rearm(&mut self, key: TimerKey, deadline: I) -> bool {
        let Some(position) = self.position(key) else {
            return false;
        };
        self.heap[position].deadline = deadline;
        self.restore(position);
        true
    }

    /// Cancels a timer and returns its value; `None` if it has fired or was cancelled.
    pub fn cancel(&mut self, key: TimerKey) -> Option<T> {
        let position = self.position(key)?;
        Some(self.remove(position).value)
    }

    /// Arms, moves or cancels the timer whose key is in `key`, and updates `key`. `value` is used
    /// if a timer has to be armed.
    pub fn set(&mut self, key: &mut Option<TimerKey>, deadline: Option<I>, value: T) {
        match (*key, deadline) {
            (Some(armed), Some(deadline)) if self.rearm(armed, deadline) => {}
            (_, Some(deadline)) => *key = Some(self.arm(deadline, value)),
            (Some(armed), None) => {
                self.cancel(armed);
                *key = None;
            }
            (None, None) => {}
        }
    }

    /// Returns a timer's value; `None` if it has fired or was cancelled.
    pub fn get(&self, key: TimerKey) -> Option<&T> {
        match &self.slots.get(key.slot as usize)? {
            HeapSlot { generation, content: Content::Armed { value, .. } }
                if *generation == key.generation =>
            {
                Some(value)
            }
            _ => None,
        }
    }

    /// Returns a timer's deadline; `None` if it has fired or was cancelled.
    pub fn deadline(&self, key: TimerKey) -> Option<I> {
        self.position(key).map(|position| self.heap[position].deadline)
    }

    /// Returns the earliest deadline.
    #[inline]
    pub fn next_deadline(&self) -> Option<I> {
        self.heap.first().map(|entry| entry.deadline)
    }

    /// Removes and returns one timer whose deadline is not after `now`, the earliest first. Call it
    /// until it returns `None`.
    #[inline]
    pub fn expire(&mut self, now: I) -> Option<Fired<T, I>> {
        self.next_deadline().is_some_and(|deadline| deadline <= now).then(|| self.remove(0))
    }

    /// Removes all timers.
    pub fn clear(&mut self) {
        // The slots stay: their generations guarantee that a key is never reused.
        while let Some(entry) = self.heap.pop() {
            self.free(entry.slot);
        }
    }

    /// Returns the timer's position in the heap, if it is armed.
    fn position(&self, key: TimerKey) -> Option<usize> {
        match self.slots.get(key.slot as usize)? {
            HeapSlot { generation, content: Content::Armed { position, .. } }
                if *generation == key.generation =>
            {
                Some(*position as usize)
            }
            _ => None,
        }
    }

    fn remove(&mut self, position: usize) -> Fired<T, I> {
        let Entry { deadline, slot } = self.heap.swap_remove(position);
        if position < self.heap.len() {
            self.restore(position);
        }
        let generation = self.slots[slot as usize].generation;
        let Content::Armed { value, .. } = self.free(slot) else {
            unreachable!("an entry of the heap has a slot with a timer")
        };
        Fired { key: TimerKey { slot, generation }, deadline, value }
    }

    fn free(&mut self, slot: u32) -> Content<T> {
        let freed = &mut self.slots[slot as usize];
        let content = std::mem::replace(&mut freed.content, Content::Free { next: None });
        // A slot that has used up its generations is never reused: that costs a few bytes per 2³²
        // timers.
        if let Some(generation) = freed.generation.checked_add(1) {
            *freed = HeapSlot { generation, content: Content::Free { next: self.first_free } };
            self.first_free = Some(slot);
        }
        content
    }

    /// Restores the heap's order after the entry at `position` has changed.
    fn restore(&mut self, position: usize) {
        let sifted = self.sift_up(position);
        if sifted == position {
            self.sift_down(position);
        }
    }

    fn sift_up(&mut self, mut position: usize) -> usize {
        let entry = self.heap[position];
        while position > 0 {
            let parent = (position - 1) / CHILDREN;
            if self.heap[parent].deadline <= entry.deadline {
                break;
            }
            self.put(position, self.heap[parent]);
            position = parent;
        }
        self.put(position, entry);
        position
    }

    fn sift_down(&mut self, mut position: usize) {
        let entry = self.heap[position];
        loop {
            let first = position * CHILDREN + 1;
            let children = first..(first + CHILDREN).min(self.heap.len());
            let Some(child) = children.min_by_key(|child| self.heap[*child].deadline) else {
                break;
            };
            if entry.deadline <= self.heap[child].deadline {
                break;
            }
            self.put(position, self.heap[child]);
            position = child;
        }
        self.put(position, entry);
    }

    fn put(&mut self, at: usize, entry: Entry<I>) {
        self.heap[at] = entry;
        if let Content::Armed { position, .. } = &mut self.slots[entry.slot as usize].content {
            *position = narrow(at);
        }
    }
}

impl<T, I> Default for TimerHeap<T, I> {
    fn default() -> Self {
        Self::new()
    }
}

#[expect(clippy::expect_used, reason = "memory ends before 2^32 timers")]
fn narrow(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than 2^32 timers")
}

#[cfg(test)]
mod tests;
