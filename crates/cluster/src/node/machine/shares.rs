//! The node's resources, as far as it asks for tasks that need them.
//!
//! The local pool counts what tasks take while they run. Here the node counts what the tasks need
//! that it holds, so that it asks for no more of them than it can run at a time: others may be free
//! to run the rest. A task that comes although too little is left is returned, so all that the node
//! has decided to run fit beside each other, and none of them waits for a resource.

use std::collections::BTreeMap;

use super::{Machine, Token};
use crate::requirements::Class;

#[derive(Debug, Default)]
pub(super) struct NodeShares {
    totals: BTreeMap<String, u64>,
    /// Amounts that tasks that are held need. Each is a sum of `u64`s.
    in_use: BTreeMap<String, u128>,
}

impl NodeShares {
    pub(super) fn new(totals: BTreeMap<String, u64>) -> Self {
        Self { totals, in_use: BTreeMap::new() }
    }

    pub(super) fn take(&mut self, class: &Class) {
        if self.totals.is_empty() {
            return;
        }
        for (name, amount) in class.requirements().resources() {
            *self.in_use.entry(name.to_owned()).or_default() += u128::from(amount);
        }
    }

    pub(super) fn give_back(&mut self, class: &Class) {
        for (name, amount) in class.requirements().resources() {
            if let Some(in_use) = self.in_use.get_mut(name) {
                *in_use = in_use.saturating_sub(amount.into());
            }
        }
    }

    /// Returns `true` if the tasks that are held, among them one of this class, need more of
    /// something that it needs than there is.
    pub(super) fn is_exceeded(&self, class: &Class) -> bool {
        if self.totals.is_empty() {
            return false;
        }
        class.requirements().resources().any(|(name, _)| {
            let total = self.totals.get(name).copied().unwrap_or(0);
            self.in_use.get(name).is_some_and(|in_use| *in_use > total.into())
        })
    }

    /// Returns how many more tasks of this class could run, as far as resources are concerned.
    pub(super) fn room(&self, class: &Class) -> u32 {
        if self.totals.is_empty() {
            // A node without resources has no lane that needs any.
            return u32::MAX;
        }
        let requirements = class.requirements();
        let rooms = requirements.resources().map(|(name, amount)| {
            let total = self.totals.get(name).copied().unwrap_or(0);
            let in_use = self.in_use.get(name).copied().unwrap_or(0);
            u128::from(total).saturating_sub(in_use) / u128::from(amount.max(1))
        });
        rooms.min().map_or(u32::MAX, |room| u32::try_from(room).unwrap_or(u32::MAX))
    }
}

impl Machine {
    /// Takes back what a task needed, if it has not been taken back yet.
    pub(super) fn give_back(&mut self, token: Token) {
        let share = self.held.get_mut(&token).and_then(|held| held.share.take());
        if let Some(class) = share.filter(|_| !self.shares.totals.is_empty()) {
            self.shares.give_back(&class);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarcest_resource_limits_the_number_of_tasks() {
        let totals = [("gpu", 4), ("memory", 10)].map(|(name, total)| (name.to_owned(), total));
        let mut shares = NodeShares::new(BTreeMap::from(totals));
        let class = |text: &str| text.parse::<Class>().unwrap();
        let both = class("c4-gpu=1-memory=3");
        assert_eq!(shares.room(&class("c4")), u32::MAX);
        assert_eq!(shares.room(&both), 3);
        shares.take(&both);
        assert_eq!(shares.room(&both), 2);
        assert_eq!(shares.room(&class("gpu=3")), 1);
        shares.take(&class("gpu=4"));
        assert_eq!((shares.room(&both), shares.room(&class("memory=7"))), (0, 1));
        shares.give_back(&both);
        shares.give_back(&class("gpu=4"));
        assert_eq!(shares.room(&both), 3);
    }
}
