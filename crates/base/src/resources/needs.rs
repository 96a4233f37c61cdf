//! The amounts that a task takes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// An amount of one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Need {
    /// Position of the resource in the [`Inventory`](crate::resources::Inventory).
    pub resource: u16,
    /// The amount, at least 1.
    pub amount: u64,
}

/// The amounts that a task takes while it runs: for each resource at most one amount, in
/// their order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Vec<Need>", into = "Vec<Need>")]
pub struct Needs(Arc<[Need]>);

impl Needs {
    /// Returns the amounts.
    pub fn iter(&self) -> impl Iterator<Item = Need> + '_ {
        self.0.iter().copied()
    }

    /// Returns `true` if nothing is needed.
    pub fn are_none(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<Need>> for Needs {
    /// Adds up amounts of the same resource.
    fn from(mut all: Vec<Need>) -> Self {
        all.retain(|need| need.amount > 0);
        all.sort_unstable();
        all.dedup_by(|later, first| {
            let same = later.resource == first.resource;
            if same {
                first.amount = first.amount.saturating_add(later.amount);
            }
            same
        });
        Self(all.into())
    }
}

impl From<Needs> for Vec<Need> {
    fn from(needs: Needs) -> Self {
        needs.0.to_vec()
    }
}
