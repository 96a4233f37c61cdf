//! The way in which worker processes are started.

/// The way in which worker processes are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Start {
    /// Forks workers from a server of the pool where that is safe, and executes them elsewhere.
    ///
    /// It is not safe if `main` starts threads before `init`, if `worker_command` starts its
    /// program as a child, or with a C library that Brigade does not know. A pool with a sandbox
    /// executes its workers too, so that none knows the layout of another one's memory.
    #[default]
    Auto,
    /// Executes the program for each worker. Each has an address space of its own layout, and runs
    /// `main` up to `init`.
    Exec,
    /// Forks workers from a server, which has run `main` up to `init` once. Where that is not safe,
    /// no worker can be started.
    Fork,
}
