//! The names of the functions that this program's server has registered.

use std::sync::OnceLock;

use crate::key::Key;

static NAMES: OnceLock<Vec<String>> = OnceLock::new();

/// Returns the names that the worker program has registered, in order. Each server has it.
pub static FUNCTIONS: Key<(), Vec<String>> = Key::new("brigade.functions/1", names);

/// Sets the names, once.
pub(crate) fn set(names: Vec<String>) {
    let _ = NAMES.set(names);
}

fn names((): ()) -> Vec<String> {
    NAMES.get().cloned().unwrap_or_default()
}
