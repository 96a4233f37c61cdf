//! Counts what is taken and what is left.

use std::collections::BTreeSet;

use crate::resources::{Need, Needs, Resource};

/// Counts what is left of each resource.
#[derive(Debug)]
pub struct Ledger {
    left: Vec<u64>,
    /// For each resource, the numbers of the free pieces; empty for a sum.
    pieces: Vec<BTreeSet<u32>>,
}

/// The amounts that a task has taken. It must be [given back](Ledger::give_back).
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what was taken must be given back"]
pub struct Grant(Vec<(Need, Vec<u32>)>);

impl Ledger {
    /// Creates a ledger from which nothing was taken.
    pub fn new(resources: &[Resource]) -> Self {
        let pieces = |resource: &Resource| match *resource {
            Resource::Indexed(pieces) => (0..pieces).collect(),
            Resource::Sum(_) => BTreeSet::new(),
        };
        Self {
            left: resources.iter().map(|resource| resource.total()).collect(),
            pieces: resources.iter().map(pieces).collect(),
        }
    }

    /// Returns what is left of each resource.
    pub fn left(&self) -> &[u64] {
        &self.left
    }

    /// Takes all that is needed, or nothing. Of numbered pieces it takes the lowest ones.
    pub fn take(&mut self, needs: &Needs) -> Option<Grant> {
        if !fits(&self.left, needs) {
            return None;
        }
        let parts = needs.iter().map(|need| {
            let resource = usize::from(need.resource);
            self.left[resource] -= need.amount;
            let pieces = &mut self.pieces[resource];
            let count = if pieces.is_empty() { 0 } else { need.amount };
            (need, (0..count).filter_map(|_| pieces.pop_first()).collect())
        });
        Some(Grant(parts.collect()))
    }

    /// Takes back what was taken.
    pub fn give_back(&mut self, grant: Grant) {
        for (need, indices) in grant.0 {
            let resource = usize::from(need.resource);
            self.left[resource] += need.amount;
            self.pieces[resource].extend(indices);
        }
    }
}

impl Grant {
    /// Returns each amount with the numbers of its pieces, which are none for a sum.
    pub fn parts(&self) -> impl Iterator<Item = (Need, &[u32])> {
        self.0.iter().map(|(need, indices)| (*need, indices.as_slice()))
    }
}

/// Returns `true` if there is as much left as is needed.
pub(crate) fn fits(left: &[u64], needs: &Needs) -> bool {
    needs
        .iter()
        .all(|need| left.get(usize::from(need.resource)).is_some_and(|left| need.amount <= *left))
}
