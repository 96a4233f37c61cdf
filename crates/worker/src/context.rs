//! Information for a task about the worker that it runs in.
//!
//! The results are the same on every thread of a worker process. Outside a worker each function
//! returns `None`, so that code that also runs elsewhere need not know where it runs.
//!
//! A worker of a pool with `in_process` is one thread, so there are results on that thread only.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use brigade_base::{amount_in, indices_in, variables_in};
use brigade_sys::affinity;
use brigade_sys::clock::{self, Monotonic};
use brigade_sys::sync::Mutex;
use brigade_wire::Run;
pub use brigade_wire::{Attempt, TaskId, WorkerId};

/// Returns the id of this worker in its pool, or `None` outside a worker.
pub fn id() -> Option<WorkerId> {
    with(|context| Some(context.origin.get()?.worker))
}

/// Returns the number of this worker's slot in the pool, counted from 0. A replacement has the same
/// slot.
///
/// Returns `None` outside a worker.
pub fn slot() -> Option<u32> {
    Some(id()?.slot)
}

/// Returns the generation of this worker: the number of this process in its slot, counted from 1.
///
/// Returns `None` outside a worker.
pub fn generation() -> Option<u32> {
    Some(id()?.generation)
}

/// Returns a seed for random numbers that differs in each slot and generation of a pool, and is the
/// same in each run of the program.
///
/// A task that is retried after its worker died therefore gets another seed in the replacement. Two
/// pools of a program have the same seeds; combine them with a value of your own if that matters.
///
/// In a task of a stream or map that has a seed, the result is made of that and the number of the
/// input, whichever worker runs it, and is the same in each attempt. Returns `None` outside a
/// worker.
pub fn seed() -> Option<u64> {
    let Some(worker) = id() else { return SEED_HERE.get() };
    Some(with(|context| *context.seed.lock()).unwrap_or_else(|| worker.seed()))
}

/// Calls `task`, in which [`seed`] returns `seed`: outside a worker, only on this thread.
pub fn with_seed<T>(seed: u64, task: impl FnOnce() -> T) -> T {
    let _restored = Seed::replaced_by(seed);
    task()
}

/// The seed before [`with_seed`], which is set again when this is dropped.
enum Seed {
    OfTheWorker(Option<u64>),
    OfTheThread(Option<u64>),
}

impl Seed {
    fn replaced_by(seed: u64) -> Self {
        match id() {
            Some(_) => Self::OfTheWorker(with(|context| context.seed.lock().replace(seed))),
            None => Self::OfTheThread(SEED_HERE.replace(Some(seed))),
        }
    }
}

impl Drop for Seed {
    fn drop(&mut self) {
        match *self {
            Self::OfTheWorker(before) => with(|context| *context.seed.lock() = before),
            Self::OfTheThread(before) => SEED_HERE.set(before),
        }
    }
}

/// Returns the nesting depth of this worker: 1 for a worker of the main program, 2 for a worker of
/// such a worker.
///
/// Returns `None` outside a worker.
pub fn depth() -> Option<u32> {
    with(|context| Some(context.origin.get()?.depth))
}

/// Returns the task that runs in this process now, or `None` between tasks and outside a worker.
///
/// A thread that a task left behind gets the task that runs at the time of the call.
pub fn task() -> Option<TaskId> {
    Some(with(|context| context.current.get())?.0)
}

/// Returns the number of the current attempt, or `None` between tasks and outside a worker.
pub fn attempt() -> Option<Attempt> {
    Some(with(|context| context.current.get())?.1)
}

/// Returns the numbers of the CPUs that this worker is pinned to, as reported by the system when
/// the worker started.
///
/// Returns `None` for a worker that is not pinned, and outside a worker.
pub fn cores() -> Option<&'static [u32]> {
    // A worker that is a thread is not pinned.
    let origin = if IS_WORKER.get() { None } else { PROCESS.origin.get() };
    origin?.cores.as_deref()
}

/// Returns `true` if the task has exceeded its soft deadline and should clean up and return.
///
/// Returns `false` for a task without a soft deadline, between tasks and outside a worker. A call
/// costs one reading of the clock, which is cheap enough for every turn of a loop that does any
/// work.
pub fn cancelled() -> bool {
    let end = with(|context| context.soft_end.load(Ordering::Relaxed));
    end != NO_END && end <= nanos(clock::now())
}

/// Returns the time left until the earlier of the task's soft and hard deadlines, or zero if that
/// has passed.
///
/// Returns `None` for a task without deadlines, between tasks and outside a worker.
pub fn remaining() -> Option<Duration> {
    let load = |end: &AtomicU64| end.load(Ordering::Relaxed);
    let end = with(|context| load(&context.soft_end).min(load(&context.hard_end)));
    (end != NO_END).then(|| Duration::from_nanos(end.saturating_sub(nanos(clock::now()))))
}

/// Returns the task's soft deadline, if it has one.
pub(crate) fn soft_end() -> Option<Monotonic> {
    let end = with(|context| context.soft_end.load(Ordering::Relaxed));
    (end != NO_END).then(|| Monotonic::from_nanos(end))
}

/// Returns the trace context of the task that runs now: the text that the hook of
/// `PoolBuilder::trace_context` returned when the task was submitted, such as a W3C `traceparent`.
///
/// Returns `None` for a task without one, between tasks and outside a worker.
pub fn trace_context() -> Option<String> {
    with(|context| context.trace.lock().clone())
}

/// Returns the numbers of the pieces of a resource that the task that runs now has, such as those
/// of its GPUs. See `PoolBuilder::resource`.
///
/// Returns `None` for a task that needs none of it, for a resource without numbered pieces, between
/// tasks and outside a worker.
pub fn indices(resource: &str) -> Option<Vec<u32>> {
    with(|context| indices_in(context.granted.lock().as_deref()?, resource))
}

/// Returns the amount of a resource that the task that runs now has; of numbered pieces, their
/// number. See `PoolBuilder::resource`.
///
/// Returns `None` for a task that needs none of it, between tasks and outside a worker.
pub fn amount(resource: &str) -> Option<u64> {
    with(|context| amount_in(context.granted.lock().as_deref()?, resource))
}

/// Returns environment variables that tell a command which resources the task that runs now has,
/// such as `BRIGADE_RESOURCE_GPU` with the value `0,3`. See `PoolBuilder::resource`.
///
/// Returns none for a task that needs nothing, between tasks and outside a worker.
pub fn resource_variables() -> Vec<(String, String)> {
    with(|context| context.granted.lock().as_deref().map(variables_in)).unwrap_or_default()
}

/// A worker, as its tasks see it.
struct Context {
    /// Set once, at its start.
    origin: OnceLock<Origin>,
    current: Current,
    trace: Mutex<Option<String>>,
    /// The text of the resources that the task has.
    granted: Mutex<Option<String>>,
    /// The seed of the task that runs, if its stream or map has one.
    seed: Mutex<Option<u64>>,
    /// Soft and hard deadlines of the running task, in nanoseconds of the monotonic clock.
    soft_end: AtomicU64,
    hard_end: AtomicU64,
}

/// The identity of a worker.
struct Origin {
    worker: WorkerId,
    depth: u32,
    cores: Option<Vec<u32>>,
}

/// Returns the CPUs that this thread may run on, which the system derived from the host's mask.
fn own_cores() -> Option<Vec<u32>> {
    let mask = affinity::current().ok()?;
    let bits = mask.iter().enumerate().flat_map(|(index, word)| {
        (0..u64::BITS).filter(move |bit| word >> bit & 1 == 1).map(move |bit| (index, bit))
    });
    bits.map(|(index, bit)| Some(u32::try_from(index).ok()? * u64::BITS + bit)).collect()
}

/// The worker that this process is.
static PROCESS: Context = Context::new();

thread_local! {
    /// The worker that this thread is, if [`IS_WORKER`].
    static THREAD: Context = const { Context::new() };
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
    /// The result of [`seed`] on a thread of a host.
    static SEED_HERE: Cell<Option<u64>> = const { Cell::new(None) };
}

const NO_END: u64 = u64::MAX;

fn nanos(time: Monotonic) -> u64 {
    u64::try_from(time.since_zero().as_nanos()).unwrap_or(NO_END)
}

impl Context {
    const fn new() -> Self {
        Self {
            origin: OnceLock::new(),
            current: Current::nothing(),
            trace: Mutex::new(None),
            granted: Mutex::new(None),
            seed: Mutex::new(None),
            soft_end: AtomicU64::new(NO_END),
            hard_end: AtomicU64::new(NO_END),
        }
    }
}

/// Calls `act` with the worker that this thread belongs to.
#[inline]
fn with<T>(act: impl FnOnce(&Context) -> T) -> T {
    if IS_WORKER.get() { THREAD.with(act) } else { act(&PROCESS) }
}

/// Returns `true` if this thread is a worker by itself.
pub(crate) fn is_worker_thread() -> bool {
    IS_WORKER.get()
}

/// Makes this thread a worker, and no other thread.
pub(crate) fn become_worker_thread(worker: WorkerId, depth: u32) {
    IS_WORKER.set(true);
    with(|context| {
        let _ = context.origin.set(Origin { worker, depth, cores: None });
    });
}

/// Stores the identity of this worker. Only the first call counts, because a process has one host.
pub(crate) fn become_worker(worker: WorkerId, depth: u32, pinned: bool) {
    let cores = if pinned { own_cores() } else { None };
    // A second call would require a second handshake, but `init` never returns from the first.
    let _ = PROCESS.origin.set(Origin { worker, depth, cores });
}

/// Gives this copy of the worker a seed of its own.
pub(crate) fn become_copy(number: u64) {
    *PROCESS.seed.lock() = id().map(|worker| brigade_wire::seed_of_input(worker.seed(), number));
}

/// Sets the current task until [`leave`] is called.
#[inline]
pub(crate) fn enter(task: TaskId, attempt: Attempt) {
    with(|context| context.current.enter(task, attempt));
}

/// Sets that no task runs.
#[inline]
pub(crate) fn leave() {
    with(|context| context.current.leave());
}

/// Sets the deadlines, the trace context and the resources of a task that has any, until
/// [`clear_details`] is called.
#[cold]
pub(crate) fn set_details(run: &Run<'_>) {
    let limits = run.limits;
    let now = clock::now();
    let end =
        |limit: Option<Duration>| limit.map_or(NO_END, |limit| nanos(now.saturating_add(limit)));
    with(|context| {
        context.soft_end.store(end(limits.soft()), Ordering::Relaxed);
        context.hard_end.store(end(limits.hard()), Ordering::Relaxed);
        *context.trace.lock() = run.trace_context.map(str::to_owned);
        *context.granted.lock() = run.granted.map(str::to_owned);
    });
}

/// Clears the deadlines, the trace context and the resources of a task that has ended.
#[cold]
pub(crate) fn clear_details() {
    with(|context| {
        context.soft_end.store(NO_END, Ordering::Relaxed);
        context.hard_end.store(NO_END, Ordering::Relaxed);
        *context.trace.lock() = None;
        *context.granted.lock() = None;
    });
}

/// The running task in two words that are read one after the other. Attempts start at 1, so attempt
/// 0 means that no task runs.
struct Current {
    task: AtomicU64,
    attempt: AtomicU32,
}

impl Current {
    const fn nothing() -> Self {
        Self { task: AtomicU64::new(0), attempt: AtomicU32::new(0) }
    }

    #[inline]
    fn enter(&self, task: TaskId, attempt: Attempt) {
        self.task.store(task.get(), Ordering::Relaxed);
        self.attempt.store(attempt.get(), Ordering::Release);
    }

    #[inline]
    fn leave(&self) {
        self.attempt.store(0, Ordering::Release);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_a_worker_every_function_returns_none() {
        assert_eq!(id(), None);
        assert_eq!(slot(), None);
        assert_eq!(generation(), None);
        assert_eq!(seed(), None);
        assert_eq!(depth(), None);
    }

    #[test]
    fn a_seed_lasts_as_long_as_its_task() {
        let inner = with_seed(1, || (seed(), with_seed(2, seed), seed()));
        assert_eq!(inner.0, inner.2);
        assert!(inner.0.is_some() && inner.1.is_some() && inner.0 != inner.1);
        assert_eq!(seed(), None);
    }

    #[test]
    fn a_task_is_current_only_while_it_runs() {
        let current = Current::nothing();
        assert_eq!(current.get(), None);
        current.enter(TaskId::new(0), Attempt::first().next());
        assert_eq!(current.get(), Some((TaskId::new(0), Attempt::first().next())));
        current.leave();
        assert_eq!(current.get(), None);
    }
}
