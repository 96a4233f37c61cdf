//! What can go wrong with a run as a whole. What goes wrong with a job is in its [`Outcome`](crate::Outcome).

use std::io;

use brigade_cores::ReserveError;

use crate::outcome::Ending;

/// The run could not be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// A job can never have the cores that it needs.
    #[error("job {number} ({job}) can never run")]
    NeverFits {
        /// The job's number.
        number: u64,
        /// The job.
        job: String,
        /// What it needs, and what there is.
        #[source]
        source: ReserveError,
    },
    /// Two jobs are the same.
    #[error(
        "job {second} is the same as job {first}: {job}\nremove one of them, give them labels, or allow duplicates"
    )]
    Duplicate {
        /// The number of the one that came first.
        first: u64,
        /// The number of the other.
        second: u64,
        /// Their label or command.
        job: String,
    },
    /// The canary failed, so no job that needs it was run.
    #[error("the canary failed ({ending}){}: {output}", prelude.as_deref().map(|line| format!(" after `{line}`")).unwrap_or_default())]
    Canary {
        /// The prelude that was tried.
        prelude: Option<String>,
        /// How the canary ended.
        ending: Ending,
        /// The last of what it printed.
        output: String,
    },
    /// The source of jobs failed; the jobs before it were run.
    #[error("cannot read the next job")]
    Source(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// This process is a fork of the one that built the runner, which has the jobs.
    #[error(
        "the runner belongs to another process: this one is a fork of it; build a runner after the fork"
    )]
    Forked,
    /// The system is out of descriptors, memory or processes.
    #[error("cannot {operation}")]
    System {
        /// What was to be done.
        operation: &'static str,
        /// Why it could not be.
        #[source]
        source: io::Error,
    },
}

impl RunnerError {
    /// For `map_err`.
    pub(crate) fn system<E: Into<io::Error>>(operation: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { operation, source: source.into() }
    }
}

/// A runner could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A value makes no sense.
    #[error(transparent)]
    Config(ConfigError),
    /// The cores of the machine could not be found out.
    #[error(transparent)]
    Cores(brigade_cores::BuildError),
    /// No job could ever have the cores that it would get.
    #[error("`cores_per_job` cannot be had")]
    NeverFits(#[source] ReserveError),
    /// There are no descriptors left.
    #[error("cannot make a waker")]
    Waker(#[source] io::Error),
}

/// A builder was given a value that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct ConfigError {
    /// The method of the builder.
    pub field: &'static str,
    /// What is wrong, and what to do.
    pub problem: String,
}

/// A halt policy that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no halt policy: write `now` or `soon`, a comma, `fail`, `success` or `done`, and `=` with a number \
     or a percentage, as in `now,fail=1` or `soon,done=10%`"
)]
pub struct HaltError {
    /// What was given.
    pub text: String,
}

/// A time limit that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no time limit: write seconds (`2.5`), or a percentage of the median of the jobs so far (`300%`)"
)]
pub struct LimitError {
    /// What was given.
    pub text: String,
}
