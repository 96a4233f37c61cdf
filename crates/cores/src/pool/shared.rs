//! State shared by the handles of a pool: the allocator and the queue under one lock. [`super`]
//! describes the protocol.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use brigade_sys::fork::Origin;

use super::waiter::{Hook, Waiter, wake};
use crate::allocator::{Allocator, Grant, Layout};
use crate::bits::Bits;
use crate::cpu_set::CpuSet;
use crate::error::ReserveError;
use crate::lock_file::LockFile;
use crate::request::CoreRequest;
use crate::topology::Topology;
use brigade_sys::sync::{Mutex, MutexGuard};

pub(crate) struct Shared {
    topology: Topology,
    layout: Arc<Layout>,
    /// `None` for a pool that is not exclusive between processes.
    lock_file: Option<LockFile>,
    state: Mutex<State>,
    /// A forked copy of the process shares the locks and must not release them.
    origin: Origin,
}

struct State {
    allocator: Allocator,
    /// The positions that are leased only to requests that do not fit on the others.
    avoided: Bits,
    queue: VecDeque<Arc<Waiter>>,
}

impl Shared {
    pub(super) fn new(topology: Topology, avoided: &CpuSet, lock_file: Option<LockFile>) -> Self {
        let layout = Arc::new(Layout::new(&topology));
        let allocator = Allocator::new(Arc::clone(&layout));
        let avoided = layout.positions(avoided);
        let state = Mutex::new(State { allocator, avoided, queue: VecDeque::new() });
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

    /// Returns `true` if this process is a forked copy.
    pub(super) fn is_copy(&self) -> bool {
        !self.origin.is_here()
    }

    /// Returns the lock, or `None` in a forked copy, where a thread that does not exist may hold
    /// it.
    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        self.origin.is_here().then(|| self.state.lock())
    }

    pub(super) fn free(&self) -> Bits {
        self.lock().map_or_else(Bits::default, |state| state.allocator.free_cpus().clone())
    }

    pub(super) fn waiting(&self) -> usize {
        self.lock().map_or(0, |state| state.queue.len())
    }

    /// Grants a request at once if nothing waits before it.
    pub(super) fn try_grant(&self, request: CoreRequest) -> Result<Grant, ReserveError> {
        let mut state = self.lock().ok_or(ReserveError::Forked)?;
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
        let mut state = self.lock().ok_or(ReserveError::Forked)?;
        state.check(&request)?;
        let waiter = Arc::new(Waiter::new(request, ready));
        state.queue.push_back(Arc::clone(&waiter));
        self.serve(state);
        Ok(waiter)
    }

    /// Removes a waiter from the queue. Those behind it may fit now.
    pub(super) fn withdraw(&self, waiter: &Arc<Waiter>) {
        let Some(mut state) = self.lock() else { return };
        let before = state.queue.len();
        state.queue.retain(|queued| !Arc::ptr_eq(queued, waiter));
        if state.queue.len() < before {
            self.serve(state);
        }
    }

    pub(crate) fn release(&self, taken: &Bits) {
        let Some(mut state) = self.lock() else { return };
        // Unlocked under the lock: afterwards another thread of this process may have locked the
        // bytes again.
        let unlocked = self
            .lock_file
            .as_ref()
            .map_or(Ok(()), |lock_file| lock_file.unlock(&self.layout.cpu_ids(taken)));
        state.allocator.release(taken);
        let served = self.grant_all(state);
        if let Some(lock_file) = &self.lock_file {
            // Before hooks run, which may take long.
            lock_file.announce();
        }
        if let Err(error) = unlocked {
            // Other processes see the cores as leased until this one ends.
            tracing::error!(?error, "cannot unlock cores");
        }
        served.notify();
    }

    /// Serves the queue, because other processes may have returned cores. Returns `true` if
    /// requests still wait.
    pub(super) fn recheck(&self) -> bool {
        if let Some(state) = self.lock() {
            self.serve(state);
        }
        self.waiting() > 0
    }

    fn serve(&self, state: MutexGuard<'_, State>) {
        self.grant_all(state).notify();
    }

    /// Grants requests from the head of the queue until one does not fit.
    fn grant_all(&self, mut state: MutexGuard<'_, State>) -> Outcome {
        let mut served = Outcome::default();
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
                    served.lock_error = Some((request, error));
                    break;
                }
            }
        }
        served
    }
}

/// The outcome of serving the queue. It is reported without the lock, because hooks and subscribers
/// are user code.
#[derive(Default)]
struct Outcome {
    granted: Vec<Arc<Waiter>>,
    lock_error: Option<(CoreRequest, io::Error)>,
}

impl Outcome {
    fn notify(self) {
        if let Some((request, error)) = self.lock_error {
            // There was no such error when the request was made. The next event tries again.
            tracing::error!(%request, ?error, "cannot lock cores in the lock file");
        }
        wake(self.granted);
    }
}

impl State {
    /// Refuses a request that the pool could not grant in any state.
    fn check(&self, request: &CoreRequest) -> Result<(), ReserveError> {
        if request.count == 0 {
            return Err(ReserveError::ZeroCores);
        }
        let most = self.allocator.max_count(request);
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
        let mut locked = Bits::default();
        // Terminates: each round excludes another cpu.
        while let Some(grant) = self.choose(request, &locked) {
            if let Some(lock_file) = lock_file {
                let layout = self.allocator.layout();
                if let Err(cpus) = lock_file.try_lock(&layout.cpu_ids(&grant.taken))? {
                    let positions = grant.taken.iter();
                    locked.extend(
                        positions.filter(|position| cpus.contains(layout.cpu_id(*position))),
                    );
                    continue;
                }
            }
            self.allocator.take(&grant);
            return Ok(Some(grant));
        }
        Ok(None)
    }

    fn choose(&self, request: &CoreRequest, locked: &Bits) -> Option<Grant> {
        let preferred = (!self.avoided.is_empty()).then(|| {
            let mut excluded = locked.clone();
            excluded.union_with(&self.avoided);
            self.allocator.choose(request, &excluded)
        });
        preferred.flatten().or_else(|| self.allocator.choose(request, locked))
    }
}
