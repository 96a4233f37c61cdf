//! The functions of a node, by name.

use std::collections::BTreeMap;

use brigade_pool::{Encoded, Key, signature, types_of};

/// The functions that a node runs. Their values are known to the worker only.
#[derive(Debug, Default)]
pub(super) struct NodeFunctions(BTreeMap<&'static str, Function>);

#[derive(Debug)]
struct Function {
    task: Key<Encoded, Encoded>,
    /// The hash of its types; 0 if only the worker program knows them.
    types: u64,
    signature: fn() -> String,
}

impl NodeFunctions {
    /// Adds a function. Returns `false` if the name is taken.
    #[must_use]
    pub(super) fn add<A, R>(&mut self, task: &Key<A, R>) -> bool {
        let (types, signature) = (types_of::<A, R>(), signature::<A, R> as fn() -> String);
        self.0.insert(task.name(), Function { task: task.erase(), types, signature }).is_none()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Key<Encoded, Encoded>> {
        self.0.get(name).map(|function| &function.task)
    }

    /// Returns the reason why a call with these types would be misunderstood, if there is one.
    pub(super) fn difference(&self, name: &str, types: u64) -> Option<String> {
        let function = self.0.get(name)?;
        let differs = types != 0 && function.types != 0 && types != function.types;
        differs.then(|| {
            format!(
                "`{name}` has other types in the node's program, {}: use the same key in client \
                 and node, or another name for other types",
                (function.signature)()
            )
        })
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.0.keys().map(|name| (*name).to_owned()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
