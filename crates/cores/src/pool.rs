//! A pool of cores that the threads of a process share: first come, first served, with direct
//! hand-off.
//!
//! # Protocol
//! One lock guards the allocator and the queue of waiters. The queue is first come, first served: a
//! request is not granted while an earlier one waits, so that narrow requests do not starve a wide
//! one. A thread that returns cores grants them, under the lock, to the head of the queue for as
//! long as it fits, and wakes the waiters after it has released the lock. So a waiter never
//! searches for cores itself, and no wake-up can be lost: the grant is stored in the waiter before
//! it is woken. A waiter that gives up leaves the queue under the lock; if it was granted cores
//! first, it returns them. Threads and other processes are notified before hooks run: hooks and
//! `tracing` subscribers are user code and run without the lock.
//!
//! A pool that is exclusive between processes also locks the bytes of its cpus in a file, see
//! [`lock_file`](crate::lock_file). A thread notices when other processes return cores, and serves
//! the queue then.

mod builder;
pub(crate) mod shared;
mod ticket;
mod waiter;
mod watcher;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::cpu_set::CpuSet;
use crate::error::{BuildError, ReserveError};
use crate::lease::CoreLease;
use crate::lock_file::LockFile;
use crate::request::CoreRequest;
use crate::topology::Topology;
pub use builder::CorePoolBuilder;
use shared::Shared;
pub use ticket::Ticket;
use watcher::Watcher;

/// A pool that leases the cores of a machine, or some of them.
///
/// Clones are handles to the same pool. Leases keep it alive.
///
/// A pool belongs to the process that built it. In a forked copy, requests return
/// [`Forked`](ReserveError::Forked), no cpu is free, the queue is empty, and dropping pools, leases
/// and tickets does nothing.
#[derive(Clone)]
pub struct CorePool {
    shared: Arc<Shared>,
    /// Lives as long as the handles; leases do not need it.
    _watcher: Option<Arc<Watcher>>,
}

impl CorePool {
    /// Creates a pool of all cpus that the calling thread may use, except isolated ones.
    pub fn new() -> Result<Self, BuildError> {
        Self::builder().build()
    }

    /// Returns a builder, for a pool of certain cpus, of another topology, or with isolated cpus.
    pub fn builder() -> CorePoolBuilder {
        CorePoolBuilder::default()
    }

    /// Blocks until the cores are granted, after all earlier requests.
    ///
    /// # Errors
    /// [`ZeroCores`](ReserveError::ZeroCores) and [`NeverFits`](ReserveError::NeverFits), without
    /// blocking.
    pub fn reserve(&self, request: CoreRequest) -> Result<CoreLease, ReserveError> {
        match self.try_reserve(request) {
            Err(ReserveError::Busy { .. }) => Ok(self.enqueue(request, None)?.wait()),
            result => result,
        }
    }

    /// Leases cores if they are free now and no request is waiting.
    ///
    /// # Errors
    /// [`Busy`](ReserveError::Busy), [`Lock`](ReserveError::Lock), and those of
    /// [`reserve`](Self::reserve).
    pub fn try_reserve(&self, request: CoreRequest) -> Result<CoreLease, ReserveError> {
        let grant = self.shared.try_grant(request)?;
        Ok(CoreLease::new(&self.shared, request, grant))
    }

    /// Blocks until the cores are granted, like [`reserve`](Self::reserve), or until `timeout`
    /// elapses.
    ///
    /// # Errors
    /// [`TimedOut`](ReserveError::TimedOut), and those of [`reserve`](Self::reserve).
    pub fn reserve_timeout(
        &self,
        request: CoreRequest,
        timeout: Duration,
    ) -> Result<CoreLease, ReserveError> {
        match self.try_reserve(request) {
            Err(ReserveError::Busy { .. }) => {
                let mut ticket = self.enqueue(request, None)?;
                ticket.wait_timeout(timeout).ok_or(ReserveError::TimedOut { request })
            }
            result => result,
        }
    }

    /// Enters the queue without blocking, for callers with an event loop of their own.
    ///
    /// `ready` is called once, when the cores are granted, by the thread that returned them (or by
    /// this one, before the method returns): it should only wake another thread. Take the cores
    /// with [`Ticket::try_take`]. Dropping the ticket leaves the queue.
    ///
    /// # Errors
    /// Those of [`reserve`](Self::reserve).
    pub fn reserve_later(
        &self,
        request: CoreRequest,
        ready: impl Fn() + Send + Sync + 'static,
    ) -> Result<Ticket, ReserveError> {
        self.enqueue(request, Some(Box::new(ready)))
    }

    fn enqueue(
        &self,
        request: CoreRequest,
        ready: Option<waiter::Hook>,
    ) -> Result<Ticket, ReserveError> {
        let waiter = self.shared.enqueue(request, ready)?;
        Ok(Ticket::new(self.clone(), waiter))
    }

    /// Returns the part of the machine's topology that belongs to the pool.
    pub fn topology(&self) -> &Topology {
        self.shared.topology()
    }

    /// Returns the cpus of the pool, leased or not.
    pub fn cpus(&self) -> &CpuSet {
        self.shared.topology().cpus()
    }

    /// Returns the cpus that are not leased at this moment. Other processes may have leased some of
    /// them.
    pub fn free_cpus(&self) -> CpuSet {
        self.shared.layout().cpu_ids(&self.shared.free())
    }

    /// Returns the path of the lock file, for a pool that is
    /// [exclusive](CorePoolBuilder::exclusive).
    pub fn lock_file(&self) -> Option<&Path> {
        self.shared.lock_file().map(LockFile::path)
    }

    /// Returns the number of requests that are waiting.
    pub fn waiting(&self) -> usize {
        self.shared.waiting()
    }
}

brigade_sys::debug_fields!(impl CorePool { |it| cpus: it.cpus(), free: it.free_cpus() });
