//! The functions of a node, by name.

use std::collections::BTreeMap;

use brigade_pool::{Encoded, Task};

/// The functions that a node runs. Their types are known to the worker only.
#[derive(Debug, Default)]
pub(super) struct Functions(BTreeMap<&'static str, Task<Encoded, Encoded>>);

impl Functions {
    /// Adds a function. Returns `false` if the name is taken.
    #[must_use]
    pub(super) fn add(&mut self, task: Task<Encoded, Encoded>) -> bool {
        self.0.insert(task.name(), task).is_none()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Task<Encoded, Encoded>> {
        self.0.get(name)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.0.keys().map(|name| (*name).to_owned()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
