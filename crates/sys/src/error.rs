//! The errors of this crate that are more than an [`io::Error`]; each is re-exported by the module
//! that returns it.

use std::io;

/// The reason why a function has no offset in the executable, or an offset has no function.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutableError {
    /// The function is not part of the main program.
    #[error(
        "the function at {address:#x} lies in a shared library (or outside the executable's code), where another \
         process cannot find it: link it into the program itself, or register it by name in a worker program"
    )]
    OutsideProgram {
        /// Address of the function in this process.
        address: usize,
    },
    /// The offset does not lie in the program's code.
    #[error(
        "offset {offset:#x} lies outside the executable's code: host and worker are not the same program"
    )]
    UnknownOffset {
        /// The offset to resolve.
        offset: u64,
    },
}

/// A failure before or after the task function ran. The text names the type and the cause.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The argument could not be decoded; the function did not run.
    #[error("the argument cannot be decoded: {0}")]
    Argument(String),
    /// The function ran, and its value could not be encoded.
    #[error("the result cannot be encoded: {0}")]
    Result(String),
}

/// The reason why the environment was not changed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// Another thread could read the environment at the same time, which is undefined behavior in
    /// the C library.
    #[error(
        "the environment cannot be changed while {threads} threads run: do it at the start of `main`, before any \
         thread is started"
    )]
    ThreadsRunning {
        /// Number of threads of the process.
        threads: usize,
    },
    /// The threads could not be counted.
    #[error("cannot count the threads of this process in /proc/self/task")]
    CountThreads(#[source] io::Error),
}

/// The process that started this one has ended, or is not the expected one.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host (process {host}) is gone: the parent is process {parent}")]
pub struct ParentGone {
    /// The process that should be the parent.
    pub host: u32,
    /// The process that is the parent; 0 if it is outside this pid namespace.
    pub parent: u32,
}

/// The reason why a block of an arena was not allocated.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllocError {
    /// The blocks in use leave too little of the budget.
    #[error(
        "no room for a buffer of {length} bytes: {used} of the {budget} bytes of this process's share are in use; drop buffers, wait with `alloc`, or raise `buffer_budget`"
    )]
    BudgetUsedUp {
        /// Requested length in bytes.
        length: usize,
        /// The budget of the arena in bytes.
        budget: usize,
        /// Bytes of all blocks that are in use.
        used: usize,
    },
    /// The arena or the system has no room.
    #[error(
        "no shared memory for a buffer of {length} bytes: less than 16 GiB of buffers fit into a pool, and as much into each worker"
    )]
    OutOfMemory {
        /// Requested length in bytes.
        length: usize,
    },
    /// Only the process that owns the arena may allocate in it.
    #[error("a fork of the process cannot allocate shared buffers")]
    Forked,
}

crate::debug_as_text!(ExecutableError, EntryError, EnvironmentError, ParentGone, AllocError);
