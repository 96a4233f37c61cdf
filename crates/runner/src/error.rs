//! Errors of a run as a whole. The failure of a job is in its [`Outcome`](crate::Outcome) instead.

use std::io;

use brigade_cores::ReserveError;

use crate::outcome::Ending;

/// A run that failed as a whole.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// A job needs cores that it can never get.
    #[error("job {number} ({job:.200}) can never run")]
    NeverFits {
        /// The job's number.
        number: u64,
        /// The job.
        job: String,
        /// The reason why the cores can never be reserved.
        #[source]
        source: ReserveError,
    },
    /// Two jobs are duplicates.
    #[error(
        "job {second} is the same as job {first}: {job:.200}; remove one of them, give them labels, or call \
         `allow_duplicates`"
    )]
    Duplicate {
        /// The number of the first one.
        first: u64,
        /// The number of the second one.
        second: u64,
        /// Their label or command.
        job: String,
    },
    /// The canary failed, so no job that needs it has run.
    #[error(
        "the canary failed ({ending}){}, so no job has run; {}",
        prelude.as_deref().map(|line| format!(" after `{line}`")).unwrap_or_default(),
        if output.is_empty() { "it printed nothing".to_owned() } else { format!("it printed: {output}") }
    )]
    Canary {
        /// The prelude that was tried, if any.
        prelude: Option<String>,
        /// The result of the canary.
        ending: Ending,
        /// The end of its output.
        output: String,
    },
    /// The client could not supply a job. The jobs before it have run.
    #[error("cannot get the next job")]
    Source(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// This process is a fork of the one that built the runner, which still has the jobs.
    #[error(
        "the runner belongs to another process: this one is a fork of it; build a runner after the fork"
    )]
    Forked,
    /// A file that is the input of a job cannot be read, or has become shorter.
    #[error("cannot read {} to its end; its jobs did not get all of it", path.display())]
    Input {
        /// The file.
        path: std::path::PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The system is out of descriptors, memory or processes.
    #[error("cannot {operation}")]
    System {
        /// The operation that failed.
        operation: &'static str,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
}

impl RunnerError {
    /// Returns a closure for `map_err`.
    pub(crate) fn system<E: Into<io::Error>>(operation: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { operation, source: source.into() }
    }
}

/// A runner that could not be built.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A setting is invalid.
    #[error(transparent)]
    Config(ConfigError),
    /// The cores of the machine could not be determined.
    #[error(transparent)]
    Cores(brigade_cores::BuildError),
    /// The cores of a single job could never be reserved.
    #[error("cannot reserve `cores_per_job` cores")]
    NeverFits(#[source] ReserveError),
    /// The system is out of descriptors.
    #[error("cannot create a waker")]
    Waker(#[source] io::Error),
}

/// An invalid setting of a builder.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct ConfigError {
    /// The builder method that set it.
    pub field: &'static str,
    /// The problem, and the allowed values.
    pub problem: String,
}

/// A text that is not a halt policy.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text:.40}` is not a halt policy: write `now` or `soon`, a comma, `fail`, `success` or `done`, and `=` with a number \
     or a percentage, as in `now,fail=1` or `soon,done=10%`"
)]
pub struct HaltError {
    /// The text.
    pub text: String,
}

/// A text that is not a time limit.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text:.40}` is not a time limit: write seconds (`2.5`), or a percentage of the median duration so \
     far (`300%`)"
)]
pub struct LimitError {
    /// The text.
    pub text: String,
}

/// A log from which a run cannot be resumed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The file could not be opened, read or written.
    #[error("cannot read or extend the log")]
    File(#[from] io::Error),
    /// A line is not one of a joblog.
    #[error("line {line} is not a joblog line: {text}")]
    Format {
        /// The number of the line, from 1.
        line: usize,
        /// The start of the line.
        text: String,
    },
    /// A job differs from the one that the log records under its number.
    #[error(
        "job {number} is not the job that the log records as successful: the list has changed; use another log, or do \
         not resume"
    )]
    Changed {
        /// The number of the job.
        number: u64,
    },
}

brigade_sys::debug_as_text!(
    RunnerError,
    BuildError,
    ConfigError,
    HaltError,
    LimitError,
    ResumeError
);
