//! Errors of sandboxes.

/// A sandbox is not possible as it was asked for. The text is a part of a sentence.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The kernel, or what surrounds this process, cannot enforce parts of it.
    #[error(
        "this machine cannot enforce it: {}; accept that with `best_effort`, or run where the reasons do not hold",
        .missing.join("; ")
    )]
    Missing {
        /// The parts, with their reasons.
        missing: Vec<String>,
    },
    /// A path cannot be opened.
    #[error("cannot open {path} for `{method}`: {problem}")]
    Path {
        /// The method that was called with it.
        method: &'static str,
        /// The path.
        path: String,
        /// The error of the system.
        problem: String,
    },
    /// A system call is unknown.
    #[error("`allow_call`: there is no system call {name:?} on this processor")]
    UnknownCall {
        /// The name.
        name: String,
    },
    /// A limit is not possible.
    #[error("{problem}")]
    Limit {
        /// The limit, and the problem with it.
        problem: String,
    },
    /// The rules or the filter cannot be made.
    #[error("cannot make its {part}: {problem}")]
    Make {
        /// The part.
        part: &'static str,
        /// The error of the library.
        problem: String,
    },
}

impl SandboxError {
    pub(crate) fn make(part: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self::Make { part, problem: error.to_string() }
    }
}

brigade_sys::debug_as_text!(SandboxError);
