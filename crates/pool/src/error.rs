//! Errors of pools.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use brigade_supervisor::EnvError;
use brigade_task::error::FORKED;
pub(crate) use brigade_task::{SubmitError, SubmitErrorKind, TaskError, TaskErrorKind, TimedOut};

/// A pool could not be built, started, or ended properly.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// A setting of the builder is invalid.
    #[error("{field}: {problem}")]
    Configuration {
        /// Name of the builder's method.
        field: &'static str,
        /// Description of the problem and of what is allowed.
        problem: String,
    },
    /// This program was built for a system on which Brigade starts no processes.
    #[error(
        "worker processes need Linux, and this program was built for {system}: run it on Linux or \
         in a container, or set `in_process` for workers that are threads"
    )]
    Unsupported {
        /// The system, as the standard library calls it.
        system: &'static str,
    },
    /// `init` has not run in this process, so the executable cannot serve as its own worker.
    #[error(
        "brigade::init() has not run in this process: call it in the first line of main \
         (in tests, put brigade::init_for_tests!() into the test file)"
    )]
    NotInitialized,
    /// This process was started as a worker but does not behave as one.
    #[error(
        "this process was started as a worker but did not call brigade::init(); call it in the first line of main"
    )]
    WorkerWithoutInit,
    /// This process is a worker of a pool that was built in a worker, and so on, up to the limit.
    #[error(
        "pools are nested {depth} levels deep, and the limit is {limit}: tasks that build pools whose tasks build pools \
         never end; use one pool, or build the inner pools in the main program"
    )]
    NestedTooDeep {
        /// Nesting depth of this process.
        depth: u32,
        /// Maximum nesting depth.
        limit: u32,
    },
    /// The system refused a thread or a descriptor for the pool itself.
    #[error("cannot {operation}")]
    System {
        /// Operation that failed.
        operation: &'static str,
        /// Error of the system.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// Some of the requested workers could be started, but not all.
    #[error("cannot start all workers: {reason}")]
    Start {
        /// Reason for the failure.
        reason: String,
    },
    /// The pool cannot start any worker.
    #[error("the pool is broken: {reason}")]
    Broken {
        /// Reason for the failure.
        reason: String,
    },
    /// The pool has ended but could not kill some workers, because this process has fewer
    /// privileges than when it started them.
    #[error(
        "cannot kill the worker processes {pids:?}, which still run; kill them by hand, and drop privileges before building the pool"
    )]
    LeftBehind {
        /// Process ids of these workers.
        pids: Vec<u32>,
    },
    /// The pool has been shut down.
    #[error("the pool has been shut down")]
    Closed,
    /// This process is a fork of the one that built the pool.
    #[error("the pool belongs to another process: {FORKED}")]
    Forked,
}

impl From<EnvError> for PoolError {
    fn from(EnvError { field, problem }: EnvError) -> Self {
        Self::Configuration { field, problem }
    }
}

impl PoolError {
    /// Returns what makes an error of a setting from the problem.
    pub(crate) fn configuration<P: ToString>(field: &'static str) -> impl FnOnce(P) -> Self {
        move |problem| Self::Configuration { field, problem: problem.to_string() }
    }

    /// Returns what makes an error of a setting that names a file to create.
    pub(crate) fn file<E: Display>(field: &'static str, path: &Path) -> impl FnOnce(E) -> Self {
        move |error| {
            let problem = format!("cannot create {}: {error}", path.display());
            Self::Configuration { field, problem }
        }
    }
    pub(crate) fn system(operation: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::System { operation, source: Arc::new(source) }
    }
}

brigade_sys::debug_as_text!(PoolError);
