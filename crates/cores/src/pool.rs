//! A pool of cores that threads of one process share.
//!
//! # Protocol
//! One lock guards the allocator and the queue of those who wait. The queue is first come, first served: nobody gets cores while
//! somebody waits who came before, so that a wide request is not starved by narrow ones. Whoever gives cores back grants them, under
//! the lock, to the head of the queue as long as it fits, and then wakes those after letting go of the lock. A waiter therefore
//! never looks for cores itself, and no wake-up can be lost: a grant lies in the waiter before it is woken. A waiter that gives up
//! leaves the queue under the lock; if a grant came first, it is given back. Threads and other processes are told before hooks run:
//! hooks and what listens to `tracing` are code of users, and run without the lock.
//!
//! A pool that is exclusive between processes also locks the bytes of its cpus in a file, see [`lock_file`](crate::lock_file);
//! what other processes give back is noticed by a thread, which then serves the queue.

mod builder;
pub(crate) mod shared;
mod ticket;
mod waiter;
mod watcher;

use std::fmt;
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

/// The cores of a machine, or some of them, to be leased.
///
/// Clones are handles to the same pool. Leases keep it alive.
///
/// It belongs to the process that built it. In a copy that `fork` has made of it, requests are errors
/// ([`Forked`](ReserveError::Forked)), no cpu is free, nobody waits, and dropping pools, leases and tickets does nothing.
#[derive(Clone)]
pub struct CorePool {
    shared: Arc<Shared>,
    /// For as long as there are handles; leases do not need it.
    _watcher: Option<Arc<Watcher>>,
}

impl CorePool {
    /// A pool of all cpus that the calling thread may use, without isolated ones.
    pub fn new() -> Result<Self, BuildError> {
        Self::builder().build()
    }

    /// A pool of chosen cpus, of another topology, or with isolated cpus.
    pub fn builder() -> CorePoolBuilder {
        CorePoolBuilder::default()
    }

    /// Waits until the cores are there, after all who asked before.
    ///
    /// # Errors
    /// [`ZeroCores`](ReserveError::ZeroCores) and [`NeverFits`](ReserveError::NeverFits), at once.
    pub fn reserve(&self, request: CoreRequest) -> Result<CoreLease, ReserveError> {
        match self.try_reserve(request) {
            Err(ReserveError::Busy { .. }) => Ok(self.enqueue(request, None)?.wait()),
            result => result,
        }
    }

    /// The cores, if they are free now and nobody waits.
    ///
    /// # Errors
    /// [`Busy`](ReserveError::Busy), [`Lock`](ReserveError::Lock), and those of [`reserve`](Self::reserve).
    pub fn try_reserve(&self, request: CoreRequest) -> Result<CoreLease, ReserveError> {
        let grant = self.shared.try_grant(request)?;
        Ok(CoreLease::new(&self.shared, request, grant))
    }

    /// Waits as long as [`reserve`](Self::reserve), but no longer than `timeout`.
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

    /// Queues up without waiting, for those who wait in an event loop of their own.
    ///
    /// `ready` is called once, when the cores are there, by the thread that gave them back (or by this one, before this returns): it
    /// should do no more than wake somebody. The cores are then taken with [`Ticket::try_take`]. Dropping the ticket leaves the queue.
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

    /// The machine, as far as it is in the pool.
    pub fn topology(&self) -> &Topology {
        self.shared.topology()
    }

    /// The cpus of the pool, leased or not.
    pub fn cpus(&self) -> &CpuSet {
        self.shared.topology().cpus()
    }

    /// The cpus that are not leased at this moment; other processes may have leased some of them.
    pub fn free_cpus(&self) -> CpuSet {
        self.shared.layout().cpu_ids(&self.shared.free())
    }

    /// The file through which processes agree, for a pool that is [exclusive](CorePoolBuilder::exclusive).
    pub fn lock_file(&self) -> Option<&Path> {
        self.shared.lock_file().map(LockFile::path)
    }

    /// How many requests wait at this moment.
    pub fn waiting(&self) -> usize {
        self.shared.waiting()
    }
}

impl fmt::Debug for CorePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CorePool")
            .field("cpus", self.cpus())
            .field("free", &self.free_cpus())
            .finish_non_exhaustive()
    }
}
