//! The orders to the threads that start, watch and read worker processes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use brigade_sys::memory::require_address_space;
use brigade_sys::sync::Mutex;
use brigade_sys::wait::Waker;
use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::workers::cleaner::{Cleaner, Jobs};
use crate::workers::folders::Folders;
use crate::workers::output::OutputForwarder;
use crate::workers::process_env::Stdio;
use crate::workers::reaper::Reaper;
use crate::workers::worker_process::WorkerProcess;

/// The processes of a pool's workers.
///
/// Its [threads](crate::threads) do the work. What happens is reported to the
/// [`Supervised`](crate::Supervised) owner.
pub struct Supervisor {
    /// Output of workers, and events.
    pub output: OutputForwarder,
    /// Deaths and deadlines.
    pub reaper: Reaper,
    /// Slow work.
    pub cleaner: Cleaner,
    orders: Mutex<Option<Sender<Arc<WorkerProcess>>>>,
    pub(crate) folders: Folders,
    /// Wakes the spawner while it waits for a fork server, because a worker that it starts may be
    /// no longer needed.
    pub(crate) unneeded: Waker,
    /// Process id of the fork server; 0 if there is none.
    pub(crate) fork_server: AtomicU32,
    /// A worker that was forked has not completed its handshake.
    pub(crate) is_server_suspect: AtomicBool,
}

/// The workers to start, for the spawner's thread.
pub type Orders = Receiver<Arc<WorkerProcess>>;

impl Supervisor {
    /// Creates the supervisor, without its threads. `stdio` is the destination of the output.
    ///
    /// # Errors
    /// If descriptors run out.
    pub fn new(stdio: Stdio) -> io::Result<(Self, Orders, Jobs)> {
        let (sender, orders) = unbounded();
        let (cleaner, jobs) = Cleaner::new();
        let supervisor = Self {
            output: OutputForwarder::new(stdio)?,
            reaper: Reaper::new()?,
            cleaner,
            orders: Mutex::new(Some(sender)),
            folders: Folders::default(),
            unneeded: Waker::new()?,
            fork_server: AtomicU32::new(0),
            is_server_suspect: AtomicBool::new(false),
        };
        Ok((supervisor, orders, jobs))
    }

    /// Orders the start of a worker.
    pub fn start(&self, process: Arc<WorkerProcess>) {
        if let Some(orders) = &*self.orders.lock() {
            // The spawner receives orders as long as this sender exists.
            let _ = orders.send(process);
        }
    }

    /// Returns the process id of the server from which workers are forked, while there is one.
    pub fn fork_server(&self) -> Option<u32> {
        Some(self.fork_server.load(Ordering::Relaxed)).filter(|pid| *pid != 0)
    }

    /// Records that a fork server has ended.
    pub(crate) fn forget_fork_server(&self, pid: u32) {
        // There may be another one already.
        let _ = self.fork_server.compare_exchange(pid, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Makes the spawner look whether the worker that it starts was killed.
    pub fn wake_spawner(&self) {
        self.unneeded.wake();
    }

    /// Ends all threads, which have nothing left to do.
    pub fn end(&self) {
        self.orders.lock().take();
        self.reaper.alarm.end();
        self.output.alarm.end();
        self.cleaner.end();
    }

    /// Removes the files that dead workers have left; call it after the threads have ended.
    pub fn clean_up(&self) {
        self.folders.remove_all();
    }
}

/// Address space that has to be left before a thread is started or a worker's memory is mapped:
/// room for a stack, and for the program, which would abort if an allocation failed.
const RESERVED_SPACE: u64 = 10 << 20;

/// Returns an error if another thread could use up the address space.
///
/// # Errors
/// If the limit of this process leaves too little.
pub fn require_reserve() -> io::Result<()> {
    require_address_space(RESERVED_SPACE)
}
