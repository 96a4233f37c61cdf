//! The errors of this crate that are more than an [`io::Error`]; each is re-exported by the module that returns it.

use std::io;

/// Why a function cannot be named by its place in the executable, or found again from it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutableError {
    /// The function is not part of the main program.
    #[error(
        "the function at {address:#x} lies in a shared library (or outside the executable's code), where another \
         process cannot find it: link it into the program itself, or register it by name in a worker program"
    )]
    OutsideProgram {
        /// Where the function lies in this process.
        address: usize,
    },
    /// The number does not name a place in the program's code.
    #[error(
        "offset {offset:#x} lies outside the executable's code: host and worker are not the same program"
    )]
    UnknownOffset {
        /// The number that was to be resolved.
        offset: u64,
    },
}

/// Which half of a call failed before or after the task function ran. The text names the type and the cause.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The argument could not be decoded; the function did not run.
    #[error("the argument could not be decoded: {0}")]
    Argument(String),
    /// The function ran, and its result could not be encoded.
    #[error("the result could not be encoded: {0}")]
    Result(String),
}

/// Why the environment was left as it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// Another thread could read the environment at the same time, which is undefined behaviour in the C library.
    #[error(
        "the environment cannot be changed while {threads} threads run: do it first thing in `main`, before any \
         thread is started"
    )]
    ThreadsRunning {
        /// How many threads the process has.
        threads: usize,
    },
    /// The threads could not be counted.
    #[error("cannot count the threads of this process in /proc/self/task")]
    CountThreads(#[source] io::Error),
}

/// The process that started this one has ended, or is not the one that was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host (process {host}) is gone: the parent is process {parent}")]
pub struct ParentGone {
    /// The process that should be the parent.
    pub host: u32,
    /// The process that is the parent; 0 if it is outside this pid namespace.
    pub parent: u32,
}
