//! Timers over a number for time: a heap with four children a node, and a slot for each timer that knows its place.
//!
//! The heap has the deadlines, so that looking for the next one touches nothing else; the slots have the values, and the
//! keys name slots. Moving an entry of the heap tells its slot the new place: that is what cancelling needs.
//!
//! A wheel was the other choice. It arms in constant time, but knows the next deadline only to the width of a slot: it
//! wakes its owner for cascades, in which nothing fires. Here the next deadline is the first entry, and exact; and timers
//! that are armed in the order of their deadlines, which most are, do not move at all.

/// Names a timer of one [`TimerHeap`]. Never used again for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimerKey {
    slot: u32,
    generation: u32,
}

/// A timer whose deadline has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fired<T> {
    /// What [`TimerHeap::arm`] answered.
    pub key: TimerKey,
    /// When it was due.
    pub deadline: u64,
    /// What was armed.
    pub value: T,
}

/// Timers, the earliest first.
///
/// Time is a number of any unit and any zero. Nothing here reads a clock, allocates per timer beyond the growth of two
/// vectors, or depends on anything but the calls made: the same calls give the same answers.
///
/// Arming, moving and cancelling take O(log n), in the usual orders O(1); the next deadline takes O(1).
///
/// ```
/// use brigade_timer::TimerHeap;
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
pub struct TimerHeap<T> {
    heap: Vec<Entry>,
    slots: Vec<Slot<T>>,
    /// Slots without a timer.
    first_free: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    deadline: u64,
    slot: u32,
}

#[derive(Debug, Clone)]
struct Slot<T> {
    generation: u32,
    content: Content<T>,
}

#[derive(Debug, Clone)]
enum Content<T> {
    Armed { place: u32, value: T },
    Free { next: Option<u32> },
}

/// Children of a node. Four entries of 16 bytes are a cache line; the tree is half as deep as a binary one.
const CHILDREN: usize = 4;

impl<T> TimerHeap<T> {
    /// Without a timer.
    pub const fn new() -> Self {
        Self { heap: Vec::new(), slots: Vec::new(), first_free: None }
    }

    /// How many timers are armed.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether none is armed.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Arms a timer that fires from `deadline` on.
    ///
    /// # Panics
    /// With 2³² timers armed.
    pub fn arm(&mut self, deadline: u64, value: T) -> TimerKey {
        let place = self.heap.len();
        let content = Content::Armed { place: narrow(place), value };
        let slot = if let Some(slot) = self.first_free {
            let free = &mut self.slots[slot as usize];
            if let Content::Free { next } = free.content {
                self.first_free = next;
            }
            free.content = content;
            slot
        } else {
            self.slots.push(Slot { generation: 0, content });
            narrow(self.slots.len() - 1)
        };
        self.heap.push(Entry { deadline, slot });
        self.rise(place);
        TimerKey { slot, generation: self.slots[slot as usize].generation }
    }

    /// Gives a timer another deadline; false if it has fired or was cancelled.
    pub fn rearm(&mut self, key: TimerKey, deadline: u64) -> bool {
        let Some(place) = self.place(key) else {
            return false;
        };
        self.heap[place].deadline = deadline;
        self.settle(place);
        true
    }

    /// Takes a timer away; `None` if it has fired or was cancelled.
    pub fn cancel(&mut self, key: TimerKey) -> Option<T> {
        let place = self.place(key)?;
        Some(self.remove(place).value)
    }

    /// What was armed under the key; `None` if it has fired or was cancelled.
    pub fn get(&self, key: TimerKey) -> Option<&T> {
        match &self.slots.get(key.slot as usize)? {
            Slot { generation, content: Content::Armed { value, .. } }
                if *generation == key.generation =>
            {
                Some(value)
            }
            _ => None,
        }
    }

    /// When a timer is armed: its deadline.
    pub fn deadline(&self, key: TimerKey) -> Option<u64> {
        self.place(key).map(|place| self.heap[place].deadline)
    }

    /// The earliest deadline.
    #[inline]
    pub fn next_deadline(&self) -> Option<u64> {
        self.heap.first().map(|entry| entry.deadline)
    }

    /// Takes away one timer whose deadline is not after `now`, the earliest first. Call it until it answers `None`.
    #[inline]
    pub fn expire(&mut self, now: u64) -> Option<Fired<T>> {
        self.next_deadline().is_some_and(|deadline| deadline <= now).then(|| self.remove(0))
    }

    /// Takes all timers away.
    pub fn clear(&mut self) {
        // Slots stay, as their generations make sure that a key is never given twice.
        while let Some(entry) = self.heap.pop() {
            self.free(entry.slot);
        }
    }

    /// Where in the heap the timer is, if it is armed.
    fn place(&self, key: TimerKey) -> Option<usize> {
        match self.slots.get(key.slot as usize)? {
            Slot { generation, content: Content::Armed { place, .. } }
                if *generation == key.generation =>
            {
                Some(*place as usize)
            }
            _ => None,
        }
    }

    fn remove(&mut self, place: usize) -> Fired<T> {
        let Entry { deadline, slot } = self.heap.swap_remove(place);
        if place < self.heap.len() {
            self.settle(place);
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
        // A slot whose generations are used up is left alone for ever: 2³² timers cost a few bytes.
        if let Some(generation) = freed.generation.checked_add(1) {
            *freed = Slot { generation, content: Content::Free { next: self.first_free } };
            self.first_free = Some(slot);
        }
        content
    }

    /// Brings an entry of any deadline to where it belongs.
    fn settle(&mut self, place: usize) {
        let risen = self.rise(place);
        if risen == place {
            self.sink(place);
        }
    }

    fn rise(&mut self, mut place: usize) -> usize {
        let entry = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if self.heap[parent].deadline <= entry.deadline {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
        place
    }

    fn sink(&mut self, mut place: usize) {
        let entry = self.heap[place];
        loop {
            let first = place * CHILDREN + 1;
            let children = first..(first + CHILDREN).min(self.heap.len());
            let Some(child) = children.min_by_key(|child| self.heap[*child].deadline) else {
                break;
            };
            if entry.deadline <= self.heap[child].deadline {
                break;
            }
            self.put(place, self.heap[child]);
            place = child;
        }
        self.put(place, entry);
    }

    fn put(&mut self, at: usize, entry: Entry) {
        self.heap[at] = entry;
        if let Content::Armed { place, .. } = &mut self.slots[entry.slot as usize].content {
            *place = narrow(at);
        }
    }
}

impl<T> Default for TimerHeap<T> {
    fn default() -> Self {
        Self::new()
    }
}

fn narrow(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than 2^32 timers")
}

#[cfg(test)]
mod tests;
