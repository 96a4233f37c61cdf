//! Errors of settings and starts.

use brigade_wire::WorkerId;

/// A part of a command line contains a NUL byte.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} contains a NUL byte, which cannot be passed to a program")]
pub struct ContainsNul(pub(crate) &'static str);

/// A setting of the workers' environment is invalid.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct EnvError {
    /// The setting.
    pub field: &'static str,
    /// The problem, and a remedy.
    pub problem: String,
}

/// A worker could not be started, and its process is gone.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct StartError {
    /// Another try would fail too.
    pub is_permanent: bool,
    /// One sentence.
    pub reason: String,
}

impl StartError {
    pub(crate) fn new(worker: WorkerId, is_permanent: bool, reason: &str) -> Self {
        Self { is_permanent, reason: format!("{worker} cannot be started: {reason}") }
    }
}

brigade_sys::debug_as_text!(ContainsNul);
brigade_sys::debug_as_text!(EnvError, StartError);
