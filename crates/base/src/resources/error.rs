//! The error of this crate.

use std::fmt;

use crate::resources::Resource;

/// The error of a declaration, or of a need that will never be met.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// The name is not one of a resource.
    #[error(
        "\"{name}\" cannot name a resource: use 1 to 16 lower-case letters, digits and `_`, with a letter first"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A name was declared twice.
    #[error("the resource \"{name}\" is declared twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// There is none, or more than can be counted.
    #[error("the resource \"{name}\" is declared as {declared}: declare {allowed}")]
    Amount {
        /// The name.
        name: String,
        /// The declaration.
        declared: Resource,
        /// The range that is allowed.
        allowed: &'static str,
    },
    /// A task needs a resource that was not declared.
    #[error("there is no resource \"{name}\": {}", declared_ones(.declared))]
    Unknown {
        /// The name.
        name: String,
        /// Names of the resources that there are.
        declared: Vec<String>,
    },
    /// A task needs more of a resource than there is.
    #[error("{needed} of the resource \"{name}\" are needed, and there are only {total}")]
    TooMuch {
        /// The name.
        name: String,
        /// The amount that is needed.
        needed: u64,
        /// The amount that was declared.
        total: u64,
    },
}

fn declared_ones(names: &[String]) -> String {
    if names.is_empty() {
        "none is declared".to_owned()
    } else {
        format!("declared are {}", names.join(", "))
    }
}

impl fmt::Debug for ResourceError {
    /// Writes the text of the error, which a `main` that returns it prints.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")
    }
}
