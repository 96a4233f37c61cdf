//! References to user functions that are valid in worker processes.

use std::sync::Arc;

use brigade_sys::executable::{EntryPoint, FunctionOffset};
use brigade_wire::{Function, codec};

/// A reference to a function that a worker can resolve. Every task holds one, so it is no larger
/// than a name.
#[derive(Debug, Clone)]
pub(crate) enum FunctionRef {
    /// The function's offset in the executable that host and worker share.
    Offset(FunctionOffset),
    /// The name under which the worker program has registered the function.
    Name(Arc<str>),
}

/// Maximum length of a name. It is sent with each task, and no sensible name comes near.
const NAME_LIMIT: usize = 1024;

impl FunctionRef {
    /// Creates a reference to the function at an entry point. Fails if a worker could not find it.
    pub(crate) fn of(entry: EntryPoint) -> Result<Self, String> {
        FunctionOffset::of(entry).map(Self::Offset).map_err(|error| codec::chain(&error))
    }

    /// Creates a reference to a registered function. Fails if no function can have this name.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        match name.len() {
            0 => Err("its name is empty".to_owned()),
            1..=NAME_LIMIT => Ok(Self::Name(name.into())),
            length => Err(format!("its name has {length} bytes, and the limit is {NAME_LIMIT}")),
        }
    }

    pub(crate) fn for_the_wire(&self) -> Function<'_> {
        match self {
            Self::Offset(offset) => Function::Offset(offset.raw()),
            Self::Name(name) => Function::Name(name),
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

    #[test]
    fn a_function_ref_is_no_larger_than_a_name() {
        assert_eq!(size_of::<FunctionRef>(), size_of::<Arc<str>>());
    }
}
