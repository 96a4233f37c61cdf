//! The owner of a supervisor, which learns what happens to its processes.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Arc;

use brigade_sys::arena::{ArgumentArena, Terms};
use brigade_sys::clock::Monotonic;
use brigade_wire::WorkerId;
use brigade_wire::ring::Doorbell;

use crate::error::StartError;
use crate::workers::connection::Connected;
use crate::workers::settings::Settings;
use crate::workers::supervisor::Supervisor;
use crate::workers::worker_process::WorkerProcess;

/// The owner of a [`Supervisor`].
///
/// The supervisor calls these methods on its own threads, on which starts and deaths depend. So
/// they return soon, run no user code and write no output.
pub trait Supervised: Send + Sync + 'static {
    /// Returns the supervisor.
    fn supervisor(&self) -> &Supervisor;

    /// Returns the settings of all workers.
    fn settings(&self) -> &Settings;

    /// Returns `true` in a copy of the process that `fork` has made.
    fn is_forked(&self) -> bool;

    /// Returns the maximum number of workers.
    fn max_workers(&self) -> usize;

    /// Returns the memory that workers with rings share with the host, or `None` if the link is not
    /// a ring.
    fn shared_memory(&self) -> Option<SharedMemory<'_>>;

    /// Calls `start` while this thread runs on the cores of the worker, which the process inherits,
    /// and passes their number; `None` if the worker is not pinned.
    fn start<P>(
        &self,
        worker: WorkerId,
        start: impl FnOnce(Option<usize>) -> io::Result<P>,
    ) -> io::Result<P>;

    /// Prepares a thread that the supervisor has started for one worker. Called on it, before
    /// anything else.
    fn thread_began(&self);

    /// Handles that a worker could not be started. Its process is gone.
    fn start_failed(&self, worker: WorkerId, error: StartError);

    /// Handles that a worker has completed its handshake. Over an ipc link it may last until the
    /// worker's death, on a thread of the worker's own; otherwise it may run on the spawner.
    fn connected(&self, process: &Arc<WorkerProcess>, connected: Connected);

    /// Handles a panic of the thread of a worker.
    fn thread_panicked(&self, process: &Arc<WorkerProcess>);

    /// Handles that the task of a worker has entered a section with a deadline.
    fn section_began(&self, worker: WorkerId, due: Monotonic);

    /// Handles a breach of the protocol by a worker.
    fn misbehaved(&self, worker: WorkerId, problem: &str);

    /// Handles that a worker is about to end, because it has crashed. Returns `true` if its death
    /// may be reported at once; then whatever it does from now on makes no difference.
    fn crashed(&self, process: &WorkerProcess) -> bool;

    /// Prepares for the report of the death of a worker whose process may still be alive. Whatever
    /// it does from now on must make no difference.
    fn gave_up_on(&self, process: &WorkerProcess);

    /// Handles the death of a worker, whose output has been read.
    fn died(&self, process: &Arc<WorkerProcess>);

    /// Handles that the process of a worker is gone, whether its death was reported before or not.
    fn reaped(&self, process: &WorkerProcess);

    /// Handles that a worker could not be killed, because this process may not do so any more.
    fn could_not_kill(&self, process: &Arc<WorkerProcess>, error: io::Error);

    /// Does what was left to the cleaner's thread: bounded work that takes long.
    fn work(&self, work: Box<dyn Any + Send>);

    /// Does the work that is due, and returns the next deadline.
    fn tick(&self) -> Option<Monotonic>;

    /// Handles that a thread of the supervisor cannot do its part any more.
    fn gave_up(&self, part: &str, problem: &dyn fmt::Display);
}

/// Memory that workers with rings share with the host.
#[derive(Debug, Clone, Copy)]
pub struct SharedMemory<'a> {
    /// Wakes the host when an outcome arrives.
    pub doorbell: &'a Doorbell,
    /// Large arguments; `None` if workers may not read those of each other, or the host has no
    /// address space for them.
    pub arguments: Option<&'a ArgumentArena>,
    /// Maximum size of the arena for a worker's large values.
    pub most_results: usize,
    /// The terms of that arena.
    pub terms: Terms,
}
