//! What the handles of a pool share: the allocator and the queue under one lock. The protocol is in [`super`].

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brigade_sys::fork::Origin;

use super::waiter::{Hook, Waiter, wake};
use crate::allocator::{Allocator, Grant, Layout};
use crate::bits::Bits;
use crate::error::ReserveError;
use crate::lock_file::LockFile;
use crate::request::CoreRequest;
use crate::topology::Topology;

pub(crate) struct Shared {
    topology: Topology,
    layout: Arc<Layout>,
    /// For a pool that shares the machine with those of other processes.
    lock_file: Option<LockFile>,
    state: Mutex<State>,
    /// A fork of the process has the same locks, and gives none of them back.
    origin: Origin,
}

struct State {
    allocator: Allocator,
    queue: VecDeque<Arc<Waiter>>,
}

impl Shared {
    pub(super) fn new(topology: Topology, lock_file: Option<LockFile>) -> Self {
        let layout = Arc::new(Layout::new(&topology));
        let allocator = Allocator::new(Arc::clone(&layout));
        let state = Mutex::new(State { allocator, queue: VecDeque::new() });
        Self { topology, layout, lock_file, state, origin: Origin::here() }
    }

    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(super) fn lock_file(&self) -> Option<&LockFile> {
        self.lock_file.as_ref()
    }

    /// Whether this process is a copy that `fork` has made. A lock may be held in it by a thread that it does not have, so
    /// this is asked before any lock.
    pub(super) fn is_copy(&self) -> bool {
        !self.origin.is_here()
    }

    pub(super) fn free(&self) -> Bits {
        if self.is_copy() {
            return Bits::default();
        }
        self.lock().allocator.free_cpus().clone()
    }

    pub(super) fn waiting(&self) -> usize {
        if self.is_copy() { 0 } else { self.lock().queue.len() }
    }

    /// Cores for whoever comes when nobody waits.
    pub(super) fn try_grant(&self, request: CoreRequest) -> Result<Grant, ReserveError> {
        if self.is_copy() {
            return Err(ReserveError::Forked);
        }
        let mut state = self.lock();
        state.check(&request)?;
        if !state.queue.is_empty() {
            return Err(ReserveError::Busy { request });
        }
        let grant = state.grant(&request, self.lock_file.as_ref()).map_err(ReserveError::Lock)?;
        grant.ok_or(ReserveError::Busy { request })
    }

    pub(super) fn enqueue(
        &self,
        request: CoreRequest,
        ready: Option<Hook>,
    ) -> Result<Arc<Waiter>, ReserveError> {
        if self.is_copy() {
            return Err(ReserveError::Forked);
        }
        let waiter = Arc::new(Waiter::new(request, ready));
        let mut state = self.lock();
        state.check(&request)?;
        state.queue.push_back(Arc::clone(&waiter));
        self.serve(state);
        Ok(waiter)
    }

    /// Takes a waiter out of the queue; those behind it may fit now.
    pub(super) fn withdraw(&self, waiter: &Arc<Waiter>) {
        if self.is_copy() {
            return;
        }
        let mut state = self.lock();
        let before = state.queue.len();
        state.queue.retain(|queued| !Arc::ptr_eq(queued, waiter));
        if state.queue.len() < before {
            self.serve(state);
        }
    }

    pub(crate) fn give_back(&self, taken: &Bits) {
        if self.is_copy() {
            return;
        }
        let mut state = self.lock();
        // Still under the lock: afterwards the bytes may have been locked again for somebody else in this process.
        let unlocked = self
            .lock_file
            .as_ref()
            .map_or(Ok(()), |lock_file| lock_file.unlock(&self.layout.cpu_ids(taken)));
        state.allocator.give_back(taken);
        let served = self.grant_all(state);
        if let Some(lock_file) = &self.lock_file {
            // Before hooks run, which may take their time.
            lock_file.announce();
        }
        if let Err(error) = unlocked {
            // The cores stay ours for the other processes until this one ends.
            tracing::error!(?error, "cores could not be unlocked");
        }
        served.tell();
    }

    /// Looks whether other processes have given something back; whether somebody waits even so.
    pub(super) fn look_again(&self) -> bool {
        self.serve(self.lock());
        self.waiting() > 0
    }

    fn serve(&self, state: MutexGuard<'_, State>) {
        self.grant_all(state).tell();
    }

    /// Grants what the head of the queue waits for, and so on, until one does not fit.
    fn grant_all(&self, mut state: MutexGuard<'_, State>) -> Served {
        let mut served = Served::default();
        while let Some(head) = state.queue.front() {
            let request = head.request;
            match state.grant(&request, self.lock_file.as_ref()) {
                Ok(Some(grant)) => {
                    if let Some(head) = state.queue.pop_front() {
                        head.put(grant);
                        served.granted.push(head);
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    served.trouble = Some((request, error));
                    break;
                }
            }
        }
        served
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of users runs under the lock, and a panic of ours leaves cores leased at worst.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What came of looking through the queue, to be told without the lock: hooks and subscribers are code of users.
#[derive(Default)]
struct Served {
    granted: Vec<Arc<Waiter>>,
    trouble: Option<(CoreRequest, io::Error)>,
}

impl Served {
    fn tell(self) {
        if let Some((request, error)) = self.trouble {
            // The same trouble was none when the request was made; the next event tries again.
            tracing::error!(%request, ?error, "the file with the locks of cores cannot be used");
        }
        wake(self.granted);
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

    fn grant(
        &mut self,
        request: &CoreRequest,
        lock_file: Option<&LockFile>,
    ) -> io::Result<Option<Grant>> {
        let mut elsewhere = Bits::default();
        // Ends: each round excludes another cpu.
        while let Some(grant) = self.allocator.choose(request, &elsewhere) {
            if let Some(lock_file) = lock_file {
                let layout = self.allocator.layout();
                if let Err(cpus) = lock_file.try_lock(&layout.cpu_ids(&grant.taken))? {
                    let places = grant.taken.iter();
                    elsewhere.extend(places.filter(|place| cpus.contains(layout.cpu_id(*place))));
                    continue;
                }
            }
            self.allocator.take(&grant);
            return Ok(Some(grant));
        }
        Ok(None)
    }
}
