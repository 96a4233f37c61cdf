//! The heap compared with a sorted map, and its edge cases.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Arm(u64),
    /// Rearms one of the timers ever armed, chosen by its index.
    Rearm(usize, u64),
    Cancel(usize),
    Expire(u64),
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    // Few different deadlines, so that many are equal; and the ends of the range, where sums would
    // overflow.
    let time = || prop_oneof![8 => 0..50_u64, 1 => any::<u64>(), 1 => Just(u64::MAX)];
    prop_oneof![
        8 => time().prop_map(Step::Arm),
        4 => (any::<usize>(), time()).prop_map(|(index, time)| Step::Rearm(index, time)),
        4 => any::<usize>().prop_map(Step::Cancel),
        2 => time().prop_map(Step::Expire),
        1 => Just(Step::Clear),
    ]
}

impl<T, I: Copy + Ord> TimerHeap<T, I> {
    fn sanity_check(&self) {
        let mut free = 0;
        let mut next = self.first_free;
        while let Some(slot) = next {
            let Content::Free { next: after } = self.slots[slot as usize].content else {
                panic!("a free slot holds a timer")
            };
            next = after;
            free += 1;
        }
        assert_eq!(free + self.heap.len(), self.slots.len(), "each slot is free or armed");
        for (index, entry) in self.heap.iter().enumerate() {
            let Content::Armed { position, .. } = self.slots[entry.slot as usize].content else {
                panic!("an entry without a timer")
            };
            assert_eq!(position as usize, index);
            if index > 0 {
                assert!(self.heap[(index - 1) / CHILDREN].deadline <= entry.deadline);
            }
        }
    }
}

proptest! {
    #[test]
    fn it_behaves_like_a_sorted_map(steps in proptest::collection::vec(step(), 0..200)) {
        let mut heap = TimerHeap::new();
        // Keyed by deadline and number. The number is the timer's value.
        let mut map: BTreeMap<(u64, usize), TimerKey> = BTreeMap::new();
        let mut keys: Vec<TimerKey> = Vec::new();
        let armed = |map: &BTreeMap<(u64, usize), TimerKey>, number| {
            map.keys().find(|(_, armed)| *armed == number).copied()
        };
        for step in steps {
            match step {
                Step::Arm(deadline) => {
                    let key = heap.arm(deadline, keys.len());
                    prop_assert!(!keys.contains(&key), "a key is never reused");
                    map.insert((deadline, keys.len()), key);
                    keys.push(key);
                }
                Step::Rearm(index, deadline) if !keys.is_empty() => {
                    let number = index % keys.len();
                    let entry = armed(&map, number);
                    prop_assert_eq!(heap.rearm(keys[number], deadline), entry.is_some());
                    if let Some(entry) = entry {
                        map.remove(&entry);
                        map.insert((deadline, number), keys[number]);
                    }
                }
                Step::Cancel(index) if !keys.is_empty() => {
                    let number = index % keys.len();
                    let entry = armed(&map, number);
                    prop_assert_eq!(heap.get(keys[number]).copied(), entry.map(|_| number));
                    prop_assert_eq!(heap.deadline(keys[number]), entry.map(|(deadline, _)| deadline));
                    prop_assert_eq!(heap.cancel(keys[number]), entry.map(|_| number));
                    entry.map(|entry| map.remove(&entry));
                }
                Step::Rearm(..) | Step::Cancel(_) => {}
                Step::Expire(now) => {
                    let mut last = 0;
                    while let Some(fired) = heap.expire(now) {
                        prop_assert!(fired.deadline <= now, "never early");
                        prop_assert!(last <= fired.deadline, "the earliest first");
                        last = fired.deadline;
                        let removed = map.remove(&(fired.deadline, fired.value));
                        prop_assert_eq!(removed, Some(fired.key));
                    }
                    prop_assert!(map.keys().all(|(deadline, _)| *deadline > now), "all due timers have fired");
                }
                Step::Clear => {
                    heap.clear();
                    map.clear();
                }
            }
            heap.sanity_check();
            prop_assert_eq!(heap.len(), map.len());
            prop_assert_eq!(heap.is_empty(), map.is_empty());
            prop_assert_eq!(heap.next_deadline(), map.keys().next().map(|(deadline, _)| *deadline));
        }
    }
}

#[test]
fn an_old_key_of_a_reused_slot_is_ignored() {
    let mut heap = TimerHeap::new();
    let old = heap.arm(1, 'a');
    heap.cancel(old);
    let new = heap.arm(1, 'b');
    assert_eq!(old.slot, new.slot, "the slot is reused");
    assert!(!heap.rearm(old, 5));
    assert_eq!(heap.cancel(old), None);
    assert_eq!(heap.get(new), Some(&'b'));
}

#[test]
fn a_slot_is_retired_before_its_keys_repeat() {
    let mut heap = TimerHeap::new();
    let key = heap.arm(1, ());
    heap.slots[0].generation = u32::MAX;
    heap.cancel(TimerKey { generation: u32::MAX, ..key });
    assert_eq!(heap.arm(1, ()), TimerKey { slot: 1, generation: 0 });
    assert_eq!(heap.len(), 1);
}

#[test]
fn a_timer_with_a_u64_takes_forty_bytes() {
    assert_eq!(size_of::<Entry<Monotonic>>() + size_of::<HeapSlot<u64>>(), 40);
}
