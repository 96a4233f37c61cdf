//! Callbacks: each is called once, in order, with the outcome of its task, and none of them can
//! harm the pool.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::{self, ThreadId};
use std::time::Duration;

use brigade::{Handle, Pool, Shutdown, TaskError, TaskErrorKind};
use brigade_integration::{Log, builder, pool};
use brigade_testkit::faults::{aborts, hangs, panics_with_str, returns_bytes, spins};
use brigade_testkit::{BOUND, Gate, Watchdog, outcome, pass, wait_until};
use serde::de::DeserializeOwned;

fn square(number: u64) -> u64 {
    number * number
}

/// Registers a callback that sends its outcome to the returned receiver.
fn called<R: DeserializeOwned + Send + 'static>(
    handle: &Handle<R>,
) -> Receiver<Result<R, TaskError>> {
    let (sender, receiver) = channel();
    handle.on_done(move |outcome| sender.send(outcome).unwrap());
    receiver
}

/// Returns the outcome that one callback got, and checks that it got no other.
#[track_caller]
fn only<T>(receiver: &Receiver<T>) -> T {
    let first = receiver.recv_timeout(BOUND).expect("a callback is called");
    // The sender was dropped with the callback.
    assert!(receiver.recv_timeout(BOUND).is_err(), "a callback was called twice");
    first
}

/// Returns the outcomes of the callback and of the waiter of one task.
#[track_caller]
fn both<R: DeserializeOwned + Debug + Send + 'static>(
    handle: Handle<R>,
) -> [Result<R, TaskErrorKind>; 2] {
    let callback = called(&handle);
    let waited = outcome(handle);
    [only(&callback), waited].map(|outcome| outcome.map_err(|error| error.kind().clone()))
}

#[test]
fn a_callback_gets_the_same_outcome_as_a_waiter() {
    let pool = pool(1);
    assert_eq!(both(pool.submit(square, 3).unwrap()), [Ok(9), Ok(9)]);
    let large = both(pool.submit(returns_bytes, 1 << 20).unwrap());
    assert!(large.iter().all(|outcome| outcome.as_ref().unwrap().len() == 1 << 20));

    let panic = both(pool.submit(panics_with_str, ()).unwrap());
    assert!(matches!(panic[0], Err(TaskErrorKind::Panicked { .. })));
    assert_eq!(panic[0], panic[1]);

    let death = both(pool.submit(aborts, ()).unwrap());
    assert!(matches!(death[0], Err(TaskErrorKind::WorkerDied { .. })));
    assert_eq!(death[0], death[1]);

    let gate = Gate::new();
    let running = pool.submit(pass, gate.pass(1)).unwrap();
    let cancelled = pool.submit(square, 3).unwrap();
    let callback = called(&cancelled);
    assert!(cancelled.cancel());
    assert_eq!(*only(&callback).unwrap_err().kind(), TaskErrorKind::Cancelled);
    gate.open();
    outcome(running).unwrap();
}

#[test]
fn a_callback_learns_that_its_pool_ended_or_broke() {
    let killed = pool(1);
    let (running, queued) = (killed.submit(hangs, ()).unwrap(), killed.submit(square, 1).unwrap());
    let callbacks = (called(&running), called(&queued));
    killed.shutdown_with(Shutdown::Kill, BOUND).unwrap();
    // They were due before the shutdown returned, and it waits for them.
    callbacks.0.try_recv().unwrap().unwrap_err();
    callbacks.1.try_recv().unwrap().unwrap_err();

    let broken = builder(1).worker_command(&Command::new("/bin/false")).build().unwrap();
    let [outcome, _] = both(broken.submit(square, 1).unwrap());
    assert!(matches!(outcome, Err(TaskErrorKind::PoolBroken { .. })), "{outcome:?}");
}

#[test]
fn callbacks_of_a_handle_run_in_registration_order() {
    let pool = pool(1);
    let gate = Gate::new();
    let handle = pool.submit(pass, gate.pass(7)).unwrap();
    let (sender, receiver) = channel();
    let register = |number: u64| {
        let sender = sender.clone();
        handle.on_done(move |outcome| sender.send((number, outcome.unwrap())).unwrap());
    };
    (0..50).for_each(register);
    gate.open();
    // Some of them are registered while it ends, some after.
    (50..500).for_each(register);
    drop((sender, handle));
    assert!(receiver.iter().eq((0..500).map(|number| (number, 7))));
}

#[test]
fn a_late_callback_runs_but_not_on_the_callers_thread() {
    let pool = pool(1);
    let succeeded = pool.submit(square, 3).unwrap();
    let failed = pool.submit(panics_with_str, ()).unwrap();
    let gate = Gate::new();
    let running = pool.submit(pass, gate.pass(1)).unwrap();
    let cancelled = pool.submit(square, 3).unwrap();
    assert!(cancelled.cancel());
    gate.open();
    outcome(running).unwrap();
    wait_until("the others to end", BOUND, || succeeded.is_done() && failed.is_done());

    assert_eq!(only(&called(&succeeded)).unwrap(), 9);
    assert!(only(&called(&failed)).unwrap_err().is_panic());
    assert!(only(&called(&cancelled)).unwrap_err().is_cancelled());
    assert_ne!(thread_of_callback(&succeeded), thread::current().id());
    drop(pool);
    // A handle outlives its pool, and so does its promise.
    assert_eq!(only(&called(&succeeded)).unwrap(), 9);
    assert_ne!(thread_of_callback(&succeeded), thread::current().id());
    assert_eq!(outcome(succeeded).unwrap(), 9);
}

fn thread_of_callback<R: DeserializeOwned + 'static>(handle: &Handle<R>) -> ThreadId {
    let (sender, receiver) = channel();
    handle.on_done(move |_| sender.send(thread::current().id()).unwrap());
    only(&receiver)
}

#[test]
fn a_callback_for_a_taken_outcome_is_refused() {
    let pool = pool(1);
    let mut handle = pool.submit(square, 3).unwrap();
    handle.wait_timeout(BOUND).unwrap().unwrap();
    catch_unwind(AssertUnwindSafe(|| handle.on_done(|_| {}))).unwrap_err();
    // This thread is not among those that the pool waits for.
    let _watchdog = Watchdog::new("a pool with a callback that was refused", BOUND);
    pool.shutdown().unwrap();
}

#[test]
fn a_blocking_callback_delays_only_callbacks() {
    let pool = pool(1);
    let (release, held) = channel::<()>();
    let (sender, entered) = channel();
    pool.submit(square, 1).unwrap().on_done(move |_| {
        sender.send(()).unwrap();
        held.recv_timeout(BOUND).unwrap();
    });
    entered.recv_timeout(BOUND).unwrap();
    let handles: Vec<_> = (0..100).map(|number| pool.submit(square, number).unwrap()).collect();
    // Nobody collects here: the pool's own threads do, and they are free. So is the reaper.
    wait_until("the tasks to end", BOUND, || handles.iter().all(Handle::is_done));
    let dead = pool.submit(aborts, ()).unwrap();
    wait_until("the death to be reported", BOUND, || dead.is_done());
    let later = called(&handles[0]);
    release.send(()).unwrap();
    assert_eq!(only(&later).unwrap(), 0);
}

/// Panics again when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[test]
fn a_panicking_callback_is_reported_and_the_others_run() {
    Log::get();
    let pool = pool(1);
    let handle = pool.task(square).label("the seventh").submit(7).unwrap();
    let before = called(&handle);
    handle.on_done(|_| panic!("a callback's own fault"));
    handle.on_done(|_| panic_any(Bomb));
    let after = called(&handle);
    assert_eq!(only(&before).unwrap(), 49);
    assert_eq!(only(&after).unwrap(), 49);
    Log::get().wait_for_line(&[
        "ERROR",
        "a callback's own fault",
        "task 1",
        "the seventh",
        "pool=\"test\"",
    ]);
    assert_eq!(only(&called(&pool.submit(square, 8).unwrap())).unwrap(), 64);
}

/// Submits the next task of a chain when one has ended.
fn chain(pool: Arc<Pool>, left: u64, sum: u64, end: Sender<u64>) {
    let handle = pool.submit(square, left).unwrap();
    handle.on_done(move |outcome| {
        let sum = sum + outcome.unwrap();
        if left == 0 {
            end.send(sum).unwrap();
        } else {
            chain(pool, left - 1, sum, end);
        }
    });
}

#[test]
fn callbacks_submit_chains_even_into_a_full_queue() {
    let pool = Arc::new(builder(2).queue_limit(1).build().unwrap());
    let (sender, ends) = channel();
    for _ in 0..10 {
        chain(Arc::clone(&pool), 100, 0, sender.clone());
    }
    drop(sender);
    thread::scope(|scope| {
        // Keeps the queue full.
        scope.spawn(|| (0..2_000).for_each(|_| drop(pool.submit(spins, 10).unwrap())));
        for _ in 0..10 {
            assert_eq!(ends.recv_timeout(BOUND).unwrap(), 338_350);
        }
    });
}

#[test]
fn a_callback_may_wait_for_other_tasks_of_its_pool() {
    let pool = Arc::new(pool(2));
    let (sender, receiver) = channel();
    let inner = Arc::clone(&pool);
    pool.submit(square, 2).unwrap().on_done(move |outcome| {
        let handles: Vec<_> =
            (0..100).map(|number| inner.submit(square, number).unwrap()).collect();
        let sum: u64 = handles.into_iter().map(|handle| handle.wait().unwrap()).sum();
        sender.send(outcome.unwrap() + sum).unwrap();
    });
    assert_eq!(only(&receiver), 4 + 328_350);
}

#[test]
fn a_callback_may_end_its_pool() {
    let pool = Arc::new(pool(2));
    let (sender, receiver) = channel();
    let inner = Arc::clone(&pool);
    let others: Vec<_> = (0..100).map(|_| pool.submit(spins, 100).unwrap()).collect();
    let last = called(&others[99]);
    pool.submit(square, 2).unwrap().on_done(move |_| sender.send(inner.shutdown()).unwrap());
    assert!(only(&receiver).unwrap().elapsed > Duration::ZERO);
    for handle in others {
        outcome(handle).unwrap();
    }
    // This call waits for the callbacks, and is the second to end the pool.
    pool.shutdown().unwrap();
    last.try_recv().unwrap().unwrap();
}

#[test]
fn a_callback_may_be_the_last_owner_of_its_pool() {
    let pool = pool(2);
    let (sender, receiver) = channel();
    let (pass_on, owner) = channel::<Pool>();
    pool.submit(square, 2).unwrap().on_done(move |_| {
        drop(owner.recv_timeout(BOUND).unwrap());
        sender.send(()).unwrap();
    });
    let last = called(&pool.submit(square, 3).unwrap());
    pass_on.send(pool).unwrap();
    only(&receiver);
    assert_eq!(only(&last).unwrap(), 9, "callbacks run even when their pool is gone");
}

#[test]
fn a_shutdown_waits_for_the_callbacks_that_are_due() {
    let pool = pool(1);
    let gate = Gate::new();
    let (entered, entries) = channel();
    let (release, held) = channel::<()>();
    let handle = pool.submit(pass, gate.pass(1)).unwrap();
    handle.on_done(move |_| {
        entered.send(()).unwrap();
        held.recv_timeout(BOUND).unwrap();
    });
    let last = called(&handle);
    gate.open();
    entries.recv_timeout(BOUND).unwrap();
    thread::scope(|scope| {
        let shutdown = scope.spawn(|| pool.shutdown());
        wait_until("the workers to be gone", BOUND, || pool.worker_pids().is_empty());
        assert!(!shutdown.is_finished());
        release.send(()).unwrap();
        shutdown.join().unwrap().unwrap();
    });
    assert_eq!(last.try_recv().unwrap().unwrap(), 1);
}

#[test]
fn a_shutdown_timeout_leaves_a_hanging_callback_behind() {
    let pool = pool(1);
    let (release, held) = channel::<()>();
    let (sender, ended) = channel();
    pool.submit(square, 1).unwrap().on_done(move |_| {
        held.recv().unwrap_err();
        sender.send(()).unwrap();
    });
    let watchdog = Watchdog::new("a shutdown with a callback that does not end", BOUND);
    pool.shutdown_with(Shutdown::Drain, Duration::ZERO).unwrap();
    drop(watchdog);
    assert!(ended.try_recv().is_err());
    drop(release);
    only(&ended);
}

#[test]
fn nothing_of_a_finished_callback_is_kept() {
    let pool = pool(1);
    let kept = Arc::new(());
    let weak: Weak<()> = Arc::downgrade(&kept);
    let handle = pool.submit(square, 1).unwrap();
    handle.on_done(move |_| drop(kept));
    wait_until("the callback to run", BOUND, || weak.upgrade().is_none());
    assert_eq!(outcome(handle).unwrap(), 1);
}
