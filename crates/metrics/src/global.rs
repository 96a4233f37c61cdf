//! All pools of a process.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use serde::{Deserialize, Serialize};

use crate::{Measurement, PoolSnapshot};

/// All pools that this process has made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GlobalSnapshot {
    /// Number of pools that were made.
    pub pools: u64,
    /// The sum of all pools, as if they were one: `pool` is 0, `max_queue_depth` is the largest of
    /// all, and there are no workers, labels, single tasks or seconds.
    pub total: PoolSnapshot,
    /// The pools that have not ended, oldest first.
    pub live: Vec<PoolSnapshot>,
}

/// A pool, as the registry of all pools sees it.
pub trait Source: Send + Sync {
    /// Measures the pool. Must not use the registry.
    fn measure(&self) -> Measurement;
}

/// The pools of one process. Those that have ended are kept as a sum, in constant memory.
#[derive(Default)]
pub struct Registry {
    /// The process that uses it, or 0 if none has.
    process: AtomicU32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pools: u64,
    live: Vec<(u64, Weak<dyn Source>)>,
    ended: Option<Measurement>,
}

static GLOBAL: Registry = Registry::new();

/// Returns the snapshot of all pools that this process has made.
///
/// The pools are measured one after the other. Each is consistent in itself.
pub fn global() -> GlobalSnapshot {
    GLOBAL.snapshot()
}

impl Registry {
    /// Creates a registry without pools.
    pub const fn new() -> Self {
        let state = State { pools: 0, live: Vec::new(), ended: None };
        Self { process: AtomicU32::new(0), state: Mutex::new(state) }
    }

    /// Returns the registry of all pools of the process.
    pub fn of_process() -> &'static Self {
        &GLOBAL
    }

    /// Adds a pool and returns its number, counted from 1. Returns 0 if the process is a fork of
    /// one that was using the registry at that moment; the pool is not counted then.
    pub fn register(&self, pool: Weak<dyn Source>) -> u64 {
        let Some(mut state) = self.lock() else { return 0 };
        state.pools += 1;
        let number = state.pools;
        state.live.push((number, pool));
        number
    }

    /// Counts a pool as ended. Returns the snapshot of all pools if no other is left.
    pub fn retire(&self, number: u64, last: &Measurement) -> Option<GlobalSnapshot> {
        let mut state = self.lock()?;
        let position = state.live.iter().position(|(other, _)| *other == number)?;
        state.live.remove(position);
        state.ended.get_or_insert_default().add(last);
        let is_last = state.live.is_empty();
        drop(state);
        is_last.then(|| self.snapshot())
    }

    /// Returns the snapshot of all pools.
    pub fn snapshot(&self) -> GlobalSnapshot {
        let Some(state) = self.lock() else { return GlobalSnapshot::default() };
        // Dropped after the lock: the last owner of a pool may end it.
        let pools: Vec<Arc<dyn Source>> =
            state.live.iter().filter_map(|(_, pool)| pool.upgrade()).collect();
        let (made, mut total) = (state.pools, state.ended.clone().unwrap_or_default());
        // Measured under the lock, so that a pool which ends meanwhile counts once.
        let measured: Vec<_> = pools.iter().map(|pool| pool.measure()).collect();
        drop(state);
        drop(pools);
        for pool in &measured {
            total.add(pool);
        }
        let live = measured.into_iter().map(Measurement::summarize).collect();
        GlobalSnapshot { pools: made, total: total.summarize(), live }
    }

    /// Locks the state. In a fork of the process, the pools are those of the original, which is why
    /// they are forgotten; returns `None` there if the lock was held at the fork, because nobody
    /// will ever release it.
    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        let process = std::process::id();
        let owner = self.process.load(Ordering::Relaxed);
        if owner == process {
            return Some(self.state.lock().unwrap_or_else(PoisonError::into_inner));
        }
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) if owner == 0 => {
                self.state.lock().unwrap_or_else(PoisonError::into_inner)
            }
            Err(TryLockError::WouldBlock) => return None,
        };
        if owner != 0 {
            *state = State::default();
        }
        self.process.store(process, Ordering::Relaxed);
        Some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Recorder, Run};

    struct Pool(u32);

    impl Source for Pool {
        fn measure(&self) -> Measurement {
            let mut recorder = Recorder::new(0);
            recorder.accepted(1, self.0, u64::from(self.0), 1);
            recorder.finished(2, &Run { items: self.0, ..Run::default() });
            recorder.measure(3)
        }
    }

    #[test]
    fn pools_stay_counted_after_their_end() {
        let registry = Registry::new();
        let pools = [Arc::new(Pool(3)), Arc::new(Pool(4))];
        let numbers = pools.clone().map(|pool| {
            let pool: Arc<dyn Source> = pool;
            registry.register(Arc::downgrade(&pool))
        });
        assert_eq!(numbers, [1, 2]);
        let before = registry.snapshot();
        assert_eq!((before.pools, before.live.len(), before.total.enqueued), (2, 2, 7));
        assert!(registry.retire(1, &pools[0].measure()).is_none(), "one is left");
        let last = registry.retire(2, &pools[1].measure()).expect("none is left");
        assert!(registry.retire(2, &pools[1].measure()).is_none(), "it has ended before");
        assert_eq!((last.pools, last.live.len(), last.total.finished), (2, 0, 7));
        assert_eq!(last.total.max_queue_depth, 4);
        assert_eq!(registry.snapshot(), last);
    }
}
