//! A pool of cores that threads of one process share.
//!
//! # Protocol
//! One lock guards the allocator and the queue of those who wait. The queue is first come, first served: nobody gets cores while
//! somebody waits who came before, so that a wide request is not starved by narrow ones. Whoever gives cores back grants them, under
//! the lock, to the head of the queue as long as it fits, and then wakes those after letting go of the lock. A waiter therefore
//! never looks for cores itself, and no wake-up can be lost: a grant lies in the waiter before it is woken. A waiter that gives up
//! leaves the queue under the lock; if a grant came first, it is given back.

mod builder;
mod ticket;
mod waiter;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::allocator::{Allocator, Grant, Layout};
use crate::bits::Bits;
use crate::cpu_set::CpuSet;
use crate::error::{BuildError, ReserveError};
use crate::lease::CoreLease;
use crate::request::CoreRequest;
use crate::topology::Topology;
pub use builder::CorePoolBuilder;
pub use ticket::Ticket;
use waiter::Waiter;

/// The cores of a machine, or some of them, to be leased.
///
/// Clones are handles to the same pool. Leases keep it alive.
#[derive(Clone)]
pub struct CorePool {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    topology: Topology,
    layout: Arc<Layout>,
    state: Mutex<State>,
}

struct State {
    allocator: Allocator,
    queue: VecDeque<Arc<Waiter>>,
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

    fn from_topology(topology: Topology) -> Self {
        let layout = Arc::new(Layout::new(&topology));
        let allocator = Allocator::new(Arc::clone(&layout));
        let state = Mutex::new(State { allocator, queue: VecDeque::new() });
        Self { shared: Arc::new(Shared { topology, layout, state }) }
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
    /// [`Busy`](ReserveError::Busy), and those of [`reserve`](Self::reserve).
    pub fn try_reserve(&self, request: CoreRequest) -> Result<CoreLease, ReserveError> {
        let mut state = self.shared.lock();
        state.check(&request)?;
        if !state.queue.is_empty() {
            return Err(ReserveError::Busy { request });
        }
        let grant = state.grant(&request).ok_or(ReserveError::Busy { request })?;
        drop(state);
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
        let waiter = Arc::new(Waiter::new(request, ready));
        let mut state = self.shared.lock();
        state.check(&request)?;
        state.queue.push_back(Arc::clone(&waiter));
        let granted = state.serve();
        drop(state);
        waiter::wake(granted);
        Ok(Ticket::new(Arc::clone(&self.shared), waiter))
    }

    /// The machine, as far as it is in the pool.
    pub fn topology(&self) -> &Topology {
        &self.shared.topology
    }

    /// The cpus of the pool, leased or not.
    pub fn cpus(&self) -> &CpuSet {
        self.shared.topology.cpus()
    }

    /// The cpus that are not leased at this moment.
    pub fn free_cpus(&self) -> CpuSet {
        self.shared.layout.cpu_ids(self.shared.lock().allocator.free_cpus())
    }

    /// How many requests wait at this moment.
    pub fn waiting(&self) -> usize {
        self.shared.lock().queue.len()
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

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of users runs under the lock, and a panic of ours leaves cores leased at worst.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn give_back(&self, taken: &Bits) {
        let mut state = self.lock();
        state.allocator.give_back(taken);
        let granted = state.serve();
        drop(state);
        waiter::wake(granted);
    }

    /// Takes a waiter out of the queue; those behind it may fit now.
    fn withdraw(&self, waiter: &Arc<Waiter>) {
        let mut state = self.lock();
        state.queue.retain(|queued| !Arc::ptr_eq(queued, waiter));
        let granted = state.serve();
        drop(state);
        waiter::wake(granted);
    }
}

impl State {
    /// Refuses what no state of the pool could satisfy.
    fn check(&self, request: &CoreRequest) -> Result<(), ReserveError> {
        if request.count == 0 {
            return Err(ReserveError::ZeroCores);
        }
        let most = self.allocator.most(request);
        if request.count > most {
            let size = self.allocator.layout().len();
            return Err(ReserveError::NeverFits { request: *request, most, size });
        }
        Ok(())
    }

    fn grant(&mut self, request: &CoreRequest) -> Option<Grant> {
        let grant = self.allocator.choose(request, &Bits::default())?;
        self.allocator.take(&grant);
        Some(grant)
    }

    /// Grants what the head of the queue waits for, and so on, until one does not fit.
    fn serve(&mut self) -> Vec<Arc<Waiter>> {
        let mut granted = Vec::new();
        while let Some(head) = self.queue.front() {
            let request = head.request;
            let Some(grant) = self.grant(&request) else { break };
            if let Some(head) = self.queue.pop_front() {
                head.put(grant);
                granted.push(head);
            }
        }
        granted
    }
}
