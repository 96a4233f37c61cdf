//! Errors of settings.

/// A setting of the workers' environment is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct EnvError {
    /// The setting.
    pub field: &'static str,
    /// The problem, and a remedy.
    pub problem: String,
}
