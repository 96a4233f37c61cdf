//! Decides who is next of those that wait for resources: backfilling, as batch systems do it, but
//! without estimates of run times.
//!
//! Everyone with the same needs waits in one lane, in order. Whoever is at the head of a lane has a
//! *claim*: as much of what is left as it needs is out of reach for those behind it, in all lanes.
//! So what is given back goes to whoever waits first, and nobody starves; but who needs something
//! else, or less than what the claims leave, goes ahead.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::resources::ledger::fits;
use crate::resources::{Ledger, Needs};

/// Lanes that are looked at, from the one whose head has waited longest. So a look stays short if
/// everyone needs something else.
const LANES_AT_A_TIME: usize = 64;

/// Tasks that wait for resources. `R` is the order in which they leave, and must be unique; `K`
/// names them.
#[derive(Debug)]
pub struct Lanes<R, K> {
    by_needs: BTreeMap<Needs, BTreeMap<R, K>>,
    /// The heads of the lanes.
    heads: BTreeSet<(R, Needs)>,
    len: usize,
}

impl<R, K> Default for Lanes<R, K> {
    fn default() -> Self {
        Self { by_needs: BTreeMap::new(), heads: BTreeSet::new(), len: 0 }
    }
}

impl<R: Ord + Copy, K: Copy> Lanes<R, K> {
    /// Returns how many wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if nobody waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Lets `key` wait.
    pub fn insert(&mut self, needs: &Needs, rank: R, key: K) {
        let lane = self.by_needs.entry(needs.clone()).or_default();
        let head = lane.first_key_value().map(|(head, _)| *head);
        if lane.insert(rank, key).is_none() {
            self.len += 1;
        }
        if head.is_none_or(|head| rank < head) {
            if let Some(head) = head {
                self.heads.remove(&(head, needs.clone()));
            }
            self.heads.insert((rank, needs.clone()));
        }
    }

    /// Removes who waits with this rank, if anyone does.
    pub fn remove(&mut self, needs: &Needs, rank: R) -> Option<K> {
        let lane = self.by_needs.get_mut(needs)?;
        let key = lane.remove(&rank)?;
        self.len -= 1;
        if self.heads.remove(&(rank, needs.clone())) {
            match lane.first_key_value() {
                Some((head, _)) => {
                    self.heads.insert((*head, needs.clone()));
                }
                None => {
                    self.by_needs.remove(needs);
                }
            }
        }
        Some(key)
    }

    /// Removes and returns all, in their order.
    pub fn take_all(&mut self) -> Vec<K> {
        let by_needs = std::mem::take(self).by_needs;
        let mut all: Vec<(R, K)> = by_needs.into_values().flatten().collect();
        all.sort_unstable_by_key(|(rank, _)| *rank);
        all.into_iter().map(|(_, key)| key).collect()
    }

    /// Returns all.
    pub fn iter(&self) -> impl Iterator<Item = (&Needs, &R, &K)> {
        self.by_needs.iter().flat_map(|(needs, lane)| lane.iter().map(move |(r, k)| (needs, r, k)))
    }

    /// Returns up to `most` that could begin now, one after the other, with what is left.
    pub fn ready(&self, ledger: &Ledger, most: usize) -> Vec<(R, K)> {
        let mut left = ledger.left().to_vec();
        let mut ready = Vec::new();
        let heads = self.heads.iter().take(LANES_AT_A_TIME);
        let mut next: BinaryHeap<_> = heads.map(|(rank, needs)| Reverse((*rank, needs))).collect();
        while ready.len() < most
            && let Some(Reverse((rank, needs))) = next.pop()
        {
            let begins = fits(&left, needs);
            // If not, its claim is on what there is.
            for need in needs.iter() {
                let left = &mut left[usize::from(need.resource)];
                *left = left.saturating_sub(need.amount);
            }
            let lane = &self.by_needs[needs];
            if begins {
                let mut lane = lane.range(rank..);
                ready.extend(lane.next().map(|(rank, key)| (*rank, *key)));
                next.extend(lane.next().map(|(rank, _)| Reverse((*rank, needs))));
            }
        }
        ready
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::resources::{Grant, Need, Resource};

    fn needs(amounts: &[u64]) -> Needs {
        let all = (0..).zip(amounts).map(|(resource, amount)| Need { resource, amount: *amount });
        Needs::from(all.collect::<Vec<_>>())
    }

    fn keys(ready: &[(u32, u32)]) -> Vec<u32> {
        ready.iter().map(|(_, key)| *key).collect()
    }

    #[test]
    fn who_needs_something_else_goes_ahead() {
        let mut ledger = Ledger::new(&[Resource::Indexed(1), Resource::Sum(8)]);
        let gpu = ledger.take(&needs(&[1, 0])).unwrap();
        let mut lanes = Lanes::default();
        lanes.insert(&needs(&[1, 2]), 1, 1);
        lanes.insert(&needs(&[1, 2]), 2, 2);
        lanes.insert(&needs(&[0, 6]), 3, 3);
        lanes.insert(&needs(&[0, 1]), 4, 4);
        // The first claims 2 of 8, the third takes the other 6, and leaves none for the fourth.
        assert_eq!(keys(&lanes.ready(&ledger, 9)), [3]);
        ledger.give_back(gpu);
        // The second claims 2 more, which leaves too little for the third.
        assert_eq!(keys(&lanes.ready(&ledger, 9)), [1]);
    }

    #[test]
    fn one_that_needs_much_is_not_overtaken_for_ever() {
        let mut ledger = Ledger::new(&[Resource::Sum(4)]);
        let mut running = vec![ledger.take(&needs(&[3])).unwrap()];
        let mut lanes = Lanes::default();
        lanes.insert(&needs(&[4]), 0, 0);
        for rank in 1..100 {
            lanes.insert(&needs(&[1]), rank, rank);
        }
        assert!(lanes.ready(&ledger, 9).is_empty(), "one unit is left, and claimed");
        ledger.give_back(running.pop().unwrap());
        assert_eq!(keys(&lanes.ready(&ledger, 9)), [0]);
    }

    proptest! {
        /// Random arrivals, starts and ends against a list that is searched from its beginning.
        #[test]
        fn the_order_is_that_of_a_simple_list(
            steps in prop::collection::vec((0..4_u8, 0..4_u64, 0..4_u64, 0..64_u32), 1..80)
        ) {
            let resources = [Resource::Indexed(3), Resource::Sum(5)];
            let mut ledger = Ledger::new(&resources);
            let (mut lanes, mut running) = (Lanes::default(), Vec::new());
            let mut model: BTreeMap<u32, Needs> = BTreeMap::new();
            for (serial, (step, gpus, memory, rank)) in (0..).zip(steps) {
                match step {
                    0 | 1 => {
                        let needs = needs(&[gpus, memory]);
                        let rank = rank * 100 + serial;
                        lanes.insert(&needs, rank, rank);
                        model.insert(rank, needs);
                    }
                    2 => {
                        if let Some((rank, _)) = lanes.ready(&ledger, 1).first() {
                            let needs = model.remove(rank).unwrap();
                            prop_assert_eq!(lanes.remove(&needs, *rank), Some(*rank));
                            running.push(ledger.take(&needs).unwrap());
                        }
                    }
                    _ if running.is_empty() => {}
                    _ => ledger.give_back(running.swap_remove(rank as usize % running.len())),
                }
                prop_assert_eq!(keys(&lanes.ready(&ledger, 99)), expected(&model, &ledger));
                prop_assert_eq!(lanes.len(), model.len());
                let taken = running.iter().flat_map(Grant::parts).filter(|it| it.0.resource == 0);
                let mut indices: Vec<u32> = taken.flat_map(|it| it.1.to_vec()).collect();
                prop_assert_eq!(indices.len() as u64, 3 - ledger.left()[0]);
                indices.sort_unstable();
                indices.dedup();
                prop_assert_eq!(indices.len() as u64, 3 - ledger.left()[0], "a piece is taken twice");
            }
        }
    }

    fn expected(model: &BTreeMap<u32, Needs>, ledger: &Ledger) -> Vec<u32> {
        let mut left = ledger.left().to_vec();
        let (mut ready, mut blocked) = (Vec::new(), BTreeSet::new());
        for (rank, needs) in model {
            if blocked.contains(needs) {
                continue;
            }
            if fits(&left, needs) {
                ready.push(*rank);
            } else {
                blocked.insert(needs.clone());
            }
            for need in needs.iter() {
                let left = &mut left[usize::from(need.resource)];
                *left = left.saturating_sub(need.amount);
            }
        }
        ready
    }
}
