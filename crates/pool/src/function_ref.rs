//! References to user functions that are valid in worker processes.

use std::borrow::Cow;
use std::sync::Arc;

use brigade_sys::executable::{EntryPoint, FunctionOffset};
use brigade_task::function::Target;
use brigade_wire::{Function, codec};

/// A reference to a function that a worker can resolve.
#[derive(Debug, Clone)]
pub(crate) struct FunctionRef {
    /// The function's offset in the executable that host and worker share; 0 for one with a name.
    pub(crate) offset: u64,
    pub(crate) named: Option<Arc<NamedFunction>>,
}

/// A function that the worker program has registered under a name.
#[derive(Debug)]
pub(crate) struct NamedFunction {
    name: Cow<'static, str>,
    /// A hash of its types; 0 if only the name was given.
    types: u64,
    /// The same function in this program, for workers of the same build.
    offset: Option<FunctionOffset>,
}

/// Maximum length of a name. It is sent with each task, and no sensible name comes near.
const NAME_LIMIT: usize = 1024;

impl FunctionRef {
    /// Creates a reference to the function at an entry point. Fails if a worker could not find it.
    #[inline]
    pub(crate) fn of(entry: EntryPoint) -> Result<Self, String> {
        match FunctionOffset::of(entry) {
            Ok(offset) => Ok(Self { offset: offset.raw(), named: None }),
            Err(error) => Err(codec::chain(&error)),
        }
    }

    /// Creates a reference to a registered function. Fails if no function can have this name.
    fn named(name: &str) -> Result<Self, String> {
        match name.len() {
            0 => Err("its name is empty".to_owned()),
            1..=NAME_LIMIT => Ok(Self::with_name(name.to_owned().into(), 0, None)),
            length => Err(format!("its name has {length} bytes, and the limit is {NAME_LIMIT}")),
        }
    }

    /// Creates a reference to what workers are to call. Fails if no worker could find it. Workers
    /// that are started by another command may be another program.
    #[inline]
    pub(crate) fn to(target: &Target<'_>, other_command: bool) -> Result<Self, String> {
        match *target {
            Target::Item { plain, .. } => Self::of(plain),
            Target::Key { name, types, entry } => Self::of_key(name, types, entry, other_command),
            Target::Name(name) => Self::named(name),
        }
    }

    /// Creates a reference to the function for arguments with a seed.
    pub(crate) fn seeded(target: &Target<'_>) -> Result<Self, String> {
        match *target {
            Target::Item { seeded, .. } => Self::of(seeded),
            Target::Key { .. } | Target::Name(_) => {
                Err("a function with a name has no seed: make it a part of the input".to_owned())
            }
        }
    }

    fn of_key(
        name: &'static str,
        types: u64,
        entry: Option<EntryPoint>,
        other_command: bool,
    ) -> Result<Self, String> {
        match entry {
            entry if other_command => {
                let offset = entry.and_then(|entry| FunctionOffset::of(entry).ok());
                Ok(Self::with_name(name.into(), types, offset))
            }
            Some(entry) => Self::of(entry),
            None => Err(format!(
                "{name:?} has no function in this program; create its key by `Key::new`, or start \
                 the program that has it with `worker_command`"
            )),
        }
    }

    fn with_name(name: Cow<'static, str>, types: u64, offset: Option<FunctionOffset>) -> Self {
        Self { offset: 0, named: Some(Arc::new(NamedFunction { name, types, offset })) }
    }
}

impl NamedFunction {
    /// Returns the reference for a worker, which may be of the same build as this program.
    pub(crate) fn for_the_wire(&self, same_build: bool) -> Function<'_> {
        match self.offset {
            Some(offset) if same_build => Function::Offset(offset.raw()),
            _ => Function::Name { name: &self.name, types: self.types },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_and_overlong_names_are_refused() {
        assert!(FunctionRef::named("").is_err());
        assert!(FunctionRef::named(&"x".repeat(NAME_LIMIT)).is_ok());
        let problem = FunctionRef::named(&"x".repeat(NAME_LIMIT + 1)).expect_err("too long");
        assert!(problem.contains("1025"), "{problem}");
    }
}
