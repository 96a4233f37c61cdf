//! The kinds of resources.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The amount that there is of a resource, and how it is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resource {
    /// A number of equal pieces, such as GPUs, which are numbered from 0. A task learns the numbers
    /// of those that it got. All of them together are at most 8,192.
    Indexed(u32),
    /// An amount that can be divided, such as bytes of memory or licenses.
    Sum(u64),
}

/// Maximum number of pieces of all resources. A task may get all of them, and their numbers must
/// fit into the head of a message.
pub(crate) const MAX_PIECES: u32 = 8192;

impl Resource {
    /// Returns the amount that there is in all.
    pub fn total(self) -> u64 {
        match self {
            Self::Indexed(pieces) => pieces.into(),
            Self::Sum(amount) => amount,
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Indexed(pieces) => write!(out, "Indexed({pieces})"),
            Self::Sum(amount) => write!(out, "Sum({amount})"),
        }
    }
}
