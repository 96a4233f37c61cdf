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
    leases: Mutex<Vec<Option<Arc<CoreLease>>>>,
}

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
        Ok(Some(Self { pool, per_worker, leases: Mutex::default() }))
    }

    /// So many workers have cores now, at least one.
    pub(crate) fn workers(&self) -> usize {
        (self.pool.free_cpus().len() / self.per_worker.max(1)).max(1)
    }

    /// Takes cores for all slots below `workers` that have none: for all of them, or for none.
    pub(crate) fn reserve(&self, workers: usize, field: &'static str) -> Result<(), PoolError> {
        let mut leases = self.lock();
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
        self.lock().get(slot as usize)?.clone()
    }

    /// Gives back the cores of the slots from `slot` on.
    pub(crate) fn give_back_from(&self, slot: usize) {
        let mut leases = self.lock();
        if slot < leases.len() {
            leases.truncate(slot);
        }
    }

    /// Gives back the cores of a slot that gets no process any more.
    pub(crate) fn give_back(&self, slot: u32) {
        if let Some(lease) = self.lock().get_mut(slot as usize) {
            *lease = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Arc<CoreLease>>>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
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
