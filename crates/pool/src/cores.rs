//! The cores of a pool's workers: one lease for each slot, held as long as the slot may have a process. So a replacement
//! runs where its predecessor ran.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use brigade_cores::{CoreLease, CorePool, CoreRequest, ReserveError};
use brigade_wire::codec;

use crate::error::PoolError;

/// The leases of a pool, by slot.
#[derive(Debug)]
pub(crate) struct SlotCores {
    pool: CorePool,
    per_worker: usize,
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    leases: Vec<Option<Arc<CoreLease>>>,
    /// Slots below keep their leases, whether they have a process or not.
    wanted: usize,
}

/// Leases that a pool does not need any more. To drop one gives it back, which may run code of users: not under a lock.
pub(crate) type Unneeded = Vec<Arc<CoreLease>>;

/// Variables by which libraries learn how many threads to start. They are set to the number of a worker's cores unless
/// the user has set them: threads that are more than the cores only get into each other's way.
pub(crate) const THREAD_VARIABLES: [&str; 6] = [
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
];

/// The cores that this process may use, for all pools that name none of their own.
static MACHINE: OnceLock<CorePool> = OnceLock::new();

impl SlotCores {
    /// What the builder asks for; `None` when workers are not pinned.
    pub(crate) fn new(
        pool: Option<CorePool>,
        per_worker: Option<usize>,
    ) -> Result<Option<Self>, PoolError> {
        if pool.is_none() && per_worker.is_none() {
            return Ok(None);
        }
        let pool = match pool {
            Some(pool) => pool,
            None => machine()?,
        };
        let per_worker = per_worker.unwrap_or(1);
        Ok(Some(Self { pool, per_worker, slots: Mutex::default() }))
    }

    /// So many workers have cores now, at least one.
    pub(crate) fn workers(&self) -> usize {
        (self.pool.free_cpus().len() / self.per_worker.max(1)).max(1)
    }

    /// Takes cores for all slots below `workers` that have none, for all of them or for none, and keeps them until
    /// [`keep`](Self::keep) says that they are not wanted.
    pub(crate) fn reserve(&self, workers: usize, field: &'static str) -> Result<(), PoolError> {
        let mut slots = self.lock();
        let leases = &mut slots.leases;
        let held = leases.iter().flatten().count();
        let mut new = Vec::new();
        for slot in 0..workers {
            if leases.get(slot).is_some_and(Option::is_some) {
                continue;
            }
            let lease = self.pool.try_reserve(CoreRequest::new(self.per_worker));
            new.push((slot, lease.map_err(|error| self.too_many(field, workers, held, &error))?));
        }
        for (slot, lease) in new {
            if leases.len() <= slot {
                leases.resize_with(slot + 1, || None);
            }
            leases[slot] = Some(Arc::new(lease));
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
            "{workers} workers with {} core(s) each are not possible: {}; {} of {} cpus are free{}",
            self.per_worker,
            codec::chain(error),
            self.pool.free_cpus().len(),
            self.pool.cpus().len(),
            if held > 0 { format!(", {held} workers have theirs") } else { String::new() },
        );
        PoolError::Configuration { field, problem }
    }

    /// The cores of a slot.
    pub(crate) fn of(&self, slot: u32) -> Option<Arc<CoreLease>> {
        self.lock().leases.get(slot as usize)?.clone()
    }

    /// Slots from `wanted` on get no further process. The leases of those that have none now are not needed any more; the
    /// others follow with [`release`](Self::release).
    pub(crate) fn keep(&self, wanted: usize, has_process: impl Fn(usize) -> bool) -> Unneeded {
        let mut slots = self.lock();
        slots.wanted = wanted;
        let surplus = slots.leases.iter_mut().enumerate().skip(wanted);
        surplus.filter(|(slot, _)| !has_process(*slot)).filter_map(|(_, it)| it.take()).collect()
    }

    /// The process of a slot is gone.
    pub(crate) fn release(&self, slot: u32) -> Option<Arc<CoreLease>> {
        let mut slots = self.lock();
        let is_wanted = (slot as usize) < slots.wanted;
        slots.leases.get_mut(slot as usize).filter(|_| !is_wanted)?.take()
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn machine() -> Result<CorePool, PoolError> {
    if let Some(pool) = MACHINE.get() {
        return Ok(pool.clone());
    }
    let pool = CorePool::new().map_err(|error| PoolError::Configuration {
        field: "cores_per_worker",
        problem: format!("the cores of this machine are not known: {}", codec::chain(&error)),
    })?;
    Ok(MACHINE.get_or_init(|| pool).clone())
}
