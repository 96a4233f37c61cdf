//! Errors of settings and starts.

/// A setting of the workers' environment is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct EnvError {
    /// The setting.
    pub field: &'static str,
    /// The problem, and a remedy.
    pub problem: String,
}

/// A worker could not be started, and its process is gone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct StartError {
    /// Another try would fail too.
    pub is_permanent: bool,
    /// One sentence.
    pub reason: String,
}
