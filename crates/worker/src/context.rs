//! What a task may ask about where it runs.
//!
//! The answers are the same on every thread of a worker process. Outside a worker each function gives `None`, so
//! code that also runs elsewhere can ask without knowing.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use brigade_sys::affinity;
use brigade_sys::clock::{self, Monotonic};
use brigade_wire::{Attempt, RunLimits, TaskId, WorkerId};

/// Which worker of its pool this process is; `None` outside a worker.
pub fn id() -> Option<WorkerId> {
    Some(ORIGIN.get()?.worker)
}

/// The place in the pool that this worker fills, from 0 on; a replacement has the same. `None` outside a worker.
pub fn slot() -> Option<u32> {
    Some(id()?.slot)
}

/// Which process this is in its place, counted from 1; a replacement has the next number. `None` outside a worker.
pub fn generation() -> Option<u32> {
    Some(id()?.generation)
}

/// A seed for random numbers, different in each slot and generation of a pool, and the same in each run of the
/// program. `None` outside a worker.
///
/// A task whose worker died therefore meets another seed in the replacement. Two pools of a program give the same
/// seeds; combine with something of your own where that matters.
pub fn seed() -> Option<u64> {
    Some(seed_of(id()?))
}

/// How many hosts this worker has above it: 1 for a worker of the main program, 2 for a worker of such a worker.
/// `None` outside a worker.
pub fn depth() -> Option<u32> {
    Some(ORIGIN.get()?.depth)
}

/// The task that runs in this process now; `None` between tasks and outside a worker.
///
/// A thread that a task left behind sees the task that runs when it asks.
pub fn task() -> Option<TaskId> {
    Some(CURRENT.get()?.0)
}

/// Which attempt at its task this is; `None` between tasks and outside a worker.
pub fn attempt() -> Option<Attempt> {
    Some(CURRENT.get()?.1)
}

/// The cpus on which this worker runs, by their numbers, as the system told when it started. `None` for a worker that is not pinned, and
/// outside a worker.
pub fn cores() -> Option<&'static [u32]> {
    ORIGIN.get()?.cores.as_deref()
}

/// Whether the task has run longer than its soft limit, so that it should clean up and return; false for a task without
/// one, between tasks and outside a worker.
///
/// It costs a look at the clock; a task may ask in every turn of a loop that does anything.
pub fn cancelled() -> bool {
    let end = SOFT_END.load(Ordering::Relaxed);
    end != NO_END && end <= nanos(clock::now())
}

/// How long the task may go on until it is told to end, or is ended: zero when that time has come, `None` for a task that
/// may run for ever, between tasks and outside a worker.
pub fn remaining() -> Option<Duration> {
    let end = SOFT_END.load(Ordering::Relaxed).min(HARD_END.load(Ordering::Relaxed));
    (end != NO_END).then(|| Duration::from_nanos(end.saturating_sub(nanos(clock::now()))))
}

/// Who this process is; set once, by the handshake.
struct Origin {
    worker: WorkerId,
    depth: u32,
    max_rss: u64,
    cores: Option<Vec<u32>>,
}

/// The cpus that this thread may run on: what the system has made of the mask that the host gave.
fn own_cores() -> Option<Vec<u32>> {
    let mask = affinity::current().ok()?;
    let bits = mask.iter().enumerate().flat_map(|(index, word)| {
        (0..u64::BITS).filter(move |bit| word >> bit & 1 == 1).map(move |bit| (index, bit))
    });
    bits.map(|(index, bit)| Some(u32::try_from(index).ok()? * u64::BITS + bit)).collect()
}

/// Resident bytes above which this worker asks to be replaced; 0 for no limit.
pub(crate) fn max_rss() -> u64 {
    ORIGIN.get().map_or(0, |origin| origin.max_rss)
}

static ORIGIN: OnceLock<Origin> = OnceLock::new();
static CURRENT: Current = Current::nothing();

/// When the task that runs is told to end, and when the host ends it, in nanoseconds of the monotonic clock.
static SOFT_END: AtomicU64 = AtomicU64::new(NO_END);
static HARD_END: AtomicU64 = AtomicU64::new(NO_END);

const NO_END: u64 = u64::MAX;

fn nanos(time: Monotonic) -> u64 {
    u64::try_from(time.since_zero().as_nanos()).unwrap_or(NO_END)
}

/// Makes this process a worker. Only the first call counts: a process has one host.
pub(crate) fn become_worker(worker: WorkerId, depth: u32, max_rss: u64, pinned: bool) {
    let cores = if pinned { own_cores() } else { None };
    // A second call could only come from a second handshake, and `init` never returns from the first.
    let _ = ORIGIN.set(Origin { worker, depth, max_rss, cores });
}

/// What runs until the answer is dropped.
pub(crate) fn enter(task: TaskId, attempt: Attempt, limits: RunLimits) -> impl Drop {
    if limits.are_some() {
        let now = clock::now();
        let end = |limit: Option<Duration>| {
            limit.map_or(NO_END, |limit| nanos(now.saturating_add(limit)))
        };
        SOFT_END.store(end(limits.soft()), Ordering::Relaxed);
        HARD_END.store(end(limits.hard()), Ordering::Relaxed);
    }
    CURRENT.enter(task, attempt)
}

/// Forgets the limits of a task that has ended.
pub(crate) fn leave_limits() {
    SOFT_END.store(NO_END, Ordering::Relaxed);
    HARD_END.store(NO_END, Ordering::Relaxed);
}

/// The running task in two words that are read one after the other: attempts start at 1, so 0 says there is none.
struct Current {
    task: AtomicU64,
    attempt: AtomicU32,
}

impl Current {
    const fn nothing() -> Self {
        Self { task: AtomicU64::new(0), attempt: AtomicU32::new(0) }
    }

    fn enter(&self, task: TaskId, attempt: Attempt) -> Entered<'_> {
        self.task.store(task.get(), Ordering::Relaxed);
        self.attempt.store(attempt.get(), Ordering::Release);
        Entered(self)
    }

    fn get(&self) -> Option<(TaskId, Attempt)> {
        match self.attempt.load(Ordering::Acquire) {
            0 => None,
            attempt => {
                let task = self.task.load(Ordering::Relaxed);
                Some((TaskId::new(task), Attempt::new(attempt)))
            }
        }
    }
}

struct Entered<'a>(&'a Current);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.attempt.store(0, Ordering::Release);
    }
}

/// Spreads slot and generation over 64 bits by the finaliser of `SplitMix64`, which maps no two inputs to one output.
const fn seed_of(worker: WorkerId) -> u64 {
    let mut bits = (worker.slot as u64) << 32 | worker.generation as u64;
    // The odd constant keeps worker 0.0 from the fixed point zero.
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn outside_a_worker_there_is_nothing_to_know() {
        assert_eq!(id(), None);
        assert_eq!(slot(), None);
        assert_eq!(generation(), None);
        assert_eq!(seed(), None);
        assert_eq!(depth(), None);
    }

    #[test]
    fn the_seed_differs_by_slot_and_by_generation() {
        let seeds: HashSet<u64> = (0..100)
            .flat_map(|slot| (0..100).map(move |generation| WorkerId { slot, generation }))
            .map(seed_of)
            .collect();
        assert_eq!(seeds.len(), 100 * 100);
        assert!(!seeds.contains(&0));
    }

    #[test]
    fn a_task_is_known_while_it_runs_and_not_after() {
        let current = Current::nothing();
        assert_eq!(current.get(), None);
        let entered = current.enter(TaskId::new(0), Attempt::first().next());
        assert_eq!(current.get(), Some((TaskId::new(0), Attempt::first().next())));
        drop(entered);
        assert_eq!(current.get(), None);
    }
}
