//! The rights of a worker: a level, and exceptions from it.

use std::path::{Path, PathBuf};

/// A sandbox for workers or jobs: a level, and exceptions.
///
/// A worker enters it after its initializer and before its first task, and never leaves it. What it
/// does against the rules for files fails with an ordinary error; a system call that is forbidden
/// ends the worker, and the error of its task names the call.
///
/// `docs/sandbox.md` has a table of what each level forbids, and by which means.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct Sandbox {
    pub(crate) level: Level,
    pub(crate) read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
    pub(crate) execute: Vec<PathBuf>,
    pub(crate) ports: Vec<u16>,
    pub(crate) calls: Vec<String>,
    pub(crate) processes: bool,
    pub(crate) threads: bool,
    pub(crate) isolate: bool,
    pub(crate) before_initializer: bool,
    pub(crate) best_effort: bool,
    /// The sandbox is for a program that is executed in it.
    pub(crate) program: bool,
}

/// The level of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    NoNetwork,
    ReadOnly,
    Strict,
}

impl Sandbox {
    /// Returns a sandbox that forbids networks: sockets other than those of the machine itself.
    pub fn no_network() -> Self {
        Self::of(Level::NoNetwork)
    }

    /// Returns a sandbox that forbids networks and changes: of files, of other processes, and of
    /// the system. It may read everything and execute programs.
    pub fn read_only() -> Self {
        Self::of(Level::ReadOnly)
    }

    /// Returns a sandbox that forbids everything but to compute and to use descriptors that are
    /// open: no file, no network, no program, no signal.
    pub fn strict() -> Self {
        Self::of(Level::Strict)
    }

    fn of(level: Level) -> Self {
        Self {
            level,
            read: Vec::new(),
            write: Vec::new(),
            execute: Vec::new(),
            ports: Vec::new(),
            calls: Vec::new(),
            processes: level != Level::Strict,
            threads: true,
            isolate: false,
            before_initializer: false,
            best_effort: false,
            program: false,
        }
    }
}

brigade_sys::setters! {
    impl Sandbox;

    /// Allows to read a file, or a folder with everything below it. `/proc/self` and what is below
    /// it are the worker's own, unless it is [isolated](Self::isolate).
    pub fn read(self, path: impl AsRef<Path>) { self.read.push(path.as_ref().to_owned()) }

    /// Allows to read and change a file, or a folder with everything below it.
    pub fn write(self, path: impl AsRef<Path>) { self.write.push(path.as_ref().to_owned()) }

    /// Allows to read and execute a file, or those in a folder and below it. Includes
    /// [`allow_processes`](Self::allow_processes).
    pub fn execute(self, path: impl AsRef<Path>) {
        self.execute.push(path.as_ref().to_owned());
        self.processes = true;
    }

    /// Allows to connect to a port over TCP, of any machine.
    pub fn connect(self, port: u16) { self.ports.push(port) }

    /// Allows to start processes, which are in the same sandbox, and to signal them.
    pub fn allow_processes(self) { self.processes = true }

    /// Forbids to start threads, which is allowed by default.
    pub fn deny_threads(self) { self.threads = false }

    /// Allows a system call, by its name: `chmod`.
    pub fn allow_call(self, name: impl Into<String>) { self.calls.push(name.into()) }

    /// Adds namespaces of its own: of networks, of System V IPC and, at the level
    /// [`strict`](Self::strict), of mounts, in which only allowed files exist. Without it, names,
    /// sizes and times of other files can be seen. It costs almost a millisecond at the start of a
    /// worker.
    ///
    /// Not all systems allow it to users who are not root.
    pub fn isolate(self) { self.isolate = true }

    /// Makes workers enter the sandbox before their initializer. Default: after it, so that it may
    /// load what tasks need.
    pub fn before_initializer(self) { self.before_initializer = true }

    /// Goes on without the layers that this machine does not have, which the report of the pool
    /// names.
    /// Default: the pool cannot be built.
    pub fn best_effort(self) { self.best_effort = true }

    /// Makes it a sandbox for a program that is executed in it: the program may read its libraries
    /// and execute those of the system, and calls that are forbidden fail.
    #[doc(hidden)]
    pub fn for_program(self) {
        self.program = true;
        self.processes = true;
    }
}
