//! The cores of a pool's workers.
//!
//! There is one lease per slot, held as long as the slot may have a process, so that a replacement
//! runs on the cores of its predecessor.

use std::io;
use std::sync::{Arc, OnceLock};

pub(crate) use brigade_cores::{CoreLease, CorePool};
use brigade_cores::{CoreRequest, ReserveError};
use brigade_sys::sync::Mutex;
use brigade_wire::codec;

use crate::error::PoolError;

/// The core leases of a pool, by slot.
#[derive(Debug)]
pub(crate) struct SlotCores {
    pool: CorePool,
    per_worker: usize,
    slots: Mutex<LeaseSlots>,
}

#[derive(Debug, Default)]
struct LeaseSlots {
    leases: Vec<Option<Arc<CoreLease>>>,
    /// Slots below this number keep their leases, with or without a process.
    wanted: usize,
}

/// Leases that a pool no longer needs. Dropping one returns its cores, which may run user code, so
/// it must not happen under a lock.
pub(crate) type Unneeded = Vec<Arc<CoreLease>>;

/// The cores that this process may use, shared by all pools that were not given a core pool.
static MACHINE: OnceLock<CorePool> = OnceLock::new();

impl SlotCores {
    /// Creates the leases that the builder asks for. Returns `None` if workers are not pinned.
    pub(crate) fn new(
        pool: Option<CorePool>,
        per_worker: Option<usize>,
    ) -> Result<Option<Self>, PoolError> {
        if pool.is_none() && per_worker.is_none() {
            return Ok(None);
        }
        let (pool, per_worker) = (pool.map_or_else(machine, Ok)?, per_worker.unwrap_or(1));
        Ok(Some(Self { pool, per_worker, slots: Mutex::default() }))
    }

    /// Returns the number of workers that the free cores suffice for, at least 1.
    pub(crate) fn workers(&self) -> usize {
        (self.pool.free_cpus().len() / self.per_worker.max(1)).max(1)
    }

    /// Reserves cores for all slots below `workers` that have none. Either all of them get cores or
    /// none does. The leases are held until [`keep`](Self::keep) releases them.
    pub(crate) fn reserve(&self, workers: usize, field: &'static str) -> Result<(), PoolError> {
        // After an error it is dropped after the lock, because a lease calls the hooks of others.
        let mut new = Vec::new();
        let mut slots = self.slots.lock();
        let leases = &mut slots.leases;
        let held = leases.iter().flatten().count();
        if leases.len() < workers {
            leases.resize_with(workers, || None);
        }
        for _ in leases[..workers].iter().filter(|lease| lease.is_none()) {
            let lease = self.pool.try_reserve(CoreRequest::new(self.per_worker));
            new.push(lease.map_err(|error| self.too_many(field, workers, held, &error))?);
        }
        for (place, lease) in leases.iter_mut().filter(|lease| lease.is_none()).zip(new) {
            *place = Some(Arc::new(lease));
        }
        slots.wanted = slots.wanted.max(workers);
        Ok(())
    }

    fn too_many(
        &self,
        field: &'static str,
        workers: usize,
        held: usize,
        error: &ReserveError,
    ) -> PoolError {
        let problem = format!(
            "cannot reserve {} core(s) for each of {workers} workers: {}; {} of {} CPUs are free{}",
            self.per_worker,
            codec::chain(error),
            self.pool.free_cpus().len(),
            self.pool.cpus().len(),
            if held > 0 { format!(", {held} workers already have theirs") } else { String::new() },
        );
        PoolError::Configuration { field, problem }
    }

    /// Returns the lease of a slot.
    pub(crate) fn of(&self, slot: u32) -> Option<Arc<CoreLease>> {
        self.slots.lock().leases.get(slot as usize)?.clone()
    }

    /// Stops keeping leases for the slots from `wanted` on, which get no further process. Returns
    /// the leases of those without a process; the others follow with [`release`](Self::release).
    pub(crate) fn keep(&self, wanted: usize, has_process: impl Fn(usize) -> bool) -> Unneeded {
        let mut slots = self.slots.lock();
        slots.wanted = wanted;
        let surplus = slots.leases.iter_mut().enumerate().skip(wanted);
        surplus.filter(|(slot, _)| !has_process(*slot)).filter_map(|(_, it)| it.take()).collect()
    }

    /// Returns the lease of a slot whose process has ended, if the slot is no longer kept.
    pub(crate) fn release(&self, slot: u32) -> Option<Arc<CoreLease>> {
        let mut slots = self.slots.lock();
        let is_wanted = (slot as usize) < slots.wanted;
        slots.leases.get_mut(slot as usize).filter(|_| !is_wanted)?.take()
    }
}

/// Starts a process from a thread that is pinned to the cores of `lease`, and passes their number.
/// The process inherits the affinity mask, so it never runs on other cores.
///
/// Calls `on_fewer` with the requested and the effective cores if the system grants only some.
pub(crate) fn start_pinned<P>(
    lease: &CoreLease,
    on_fewer: impl FnOnce(String, String),
    start: impl FnOnce(usize) -> io::Result<P>,
) -> io::Result<P> {
    let started = lease.run_pinned(|pinned| {
        if !pinned.is_exact() {
            on_fewer(pinned.requested.to_string(), pinned.effective.to_string());
        }
        start(lease.cores().len())
    });
    started.map_err(io::Error::other)?
}

fn machine() -> Result<CorePool, PoolError> {
    if let Some(pool) = MACHINE.get() {
        return Ok(pool.clone());
    }
    let pool = CorePool::new().map_err(|error| PoolError::Configuration {
        field: "cores_per_worker",
        problem: format!("cannot detect the cores of this machine: {}", codec::chain(&error)),
    })?;
    Ok(MACHINE.get_or_init(|| pool).clone())
}
