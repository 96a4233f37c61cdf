//! Scopes, which identify the timers of a process.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// Identifies a timer of one process. Two processes may use the same name for different timers.
///
/// ```
/// use brigade_timer::Scope;
///
/// assert_eq!(Scope::from("rendezvous").to_string(), "rendezvous");
/// assert_ne!(Scope::unique(), Scope::unique());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// A name chosen by the user. Acquiring it again replaces its deadline.
    Named(Box<str>),
    /// A number that is unique in this process.
    Unique(u64),
}

/// Maximum length of a name in bytes. It bounds the size of requests.
pub const SCOPE_LIMIT: usize = 128;

impl Scope {
    /// Returns a scope that this process has not used before.
    pub fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self::Unique(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the length of the name.
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::Named(name) => name.len(),
            Self::Unique(_) => 0,
        }
    }
}

impl From<&str> for Scope {
    fn from(name: &str) -> Self {
        Self::Named(name.into())
    }
}

impl From<String> for Scope {
    fn from(name: String) -> Self {
        Self::Named(name.into())
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => out.write_str(name),
            Self::Unique(number) => write!(out, "scope {number}"),
        }
    }
}
