//! What a task calls in its worker.

use std::sync::Arc;

use brigade_sys::executable::{EntryPoint, FunctionOffset};
use brigade_wire::{Function, codec};

/// A function, as its worker finds it. Every task holds one, so it is no larger than a name is.
#[derive(Debug, Clone)]
pub(crate) enum Callee {
    /// By its place in the program that host and worker both are.
    Offset(FunctionOffset),
    /// By the name under which the worker's program has registered it.
    Name(Arc<str>),
}

/// A name is sent with each task. No sensible one comes near.
const NAME_LIMIT: usize = 1024;

impl Callee {
    /// The function behind an entry point, or why no worker could find it.
    pub(crate) fn of(entry: EntryPoint) -> Result<Self, String> {
        FunctionOffset::of(entry).map(Self::Offset).map_err(|error| codec::chain(&error))
    }

    /// The function with a name, or why no function can have it.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        match name.len() {
            0 => Err("its name is empty".to_owned()),
            1..=NAME_LIMIT => Ok(Self::Name(name.into())),
            length => {
                Err(format!("its name has {length} bytes; at most {NAME_LIMIT} are possible"))
            }
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
    fn names_that_no_function_has_are_refused() {
        assert!(Callee::named("").is_err());
        assert!(Callee::named(&"x".repeat(NAME_LIMIT)).is_ok());
        let problem = Callee::named(&"x".repeat(NAME_LIMIT + 1)).expect_err("too long");
        assert!(problem.contains("1025"), "{problem}");
    }

    #[test]
    fn a_callee_takes_no_more_room_than_a_name() {
        assert_eq!(size_of::<Callee>(), size_of::<Arc<str>>());
    }
}
