//! A full queue makes submitters wait, or returns their argument.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Wake};
use std::thread;
use std::time::{Duration, Instant};

use brigade::{Link, Pool, Shutdown, SubmitErrorKind};
use brigade_integration::builder;
use brigade_testkit::{BOUND, Gate, Watchdog, outcome, pass, processes, wait_until};

const LIMIT: usize = 3;

fn full_pool() -> Pool {
    builder(1).queue_limit(LIMIT).build().unwrap()
}

/// Occupies the worker and fills the queue.
fn fill(pool: &Pool, gate: &Gate) -> Vec<brigade::Handle<u64>> {
    let mut handles = vec![pool.submit(pass, gate.pass(0)).unwrap()];
    gate.wait_for_arrivals(1);
    handles
        .extend((1..=LIMIT as u64).map(|number| pool.try_submit(pass, gate.pass(number)).unwrap()));
    handles
}

#[test]
fn try_submit_returns_the_argument_when_the_queue_is_full() {
    let pool = full_pool();
    let gate = Gate::new();
    let handles = fill(&pool, &gate);
    let error = pool.try_submit(|text: String| text, "mine".to_owned()).unwrap_err();
    assert_eq!(*error.kind(), SubmitErrorKind::Full);
    assert!(error.is_full());
    assert_eq!(error.into_argument(), "mine");
    gate.open();
    for (number, handle) in (0..).zip(handles) {
        assert_eq!(outcome(handle).unwrap(), number);
    }
    assert_eq!(
        outcome(pool.try_submit(|text: String| text, "mine".to_owned()).unwrap()).unwrap(),
        "mine"
    );
}

#[test]
fn submit_timeout_waits_for_the_given_time() {
    let pool = full_pool();
    let gate = Gate::new();
    let _handles = fill(&pool, &gate);
    let begin = Instant::now();
    let timeout = Duration::from_millis(50);
    let error = pool.submit_timeout(|text: String| text, "mine".to_owned(), timeout).unwrap_err();
    assert!(begin.elapsed() >= timeout);
    assert_eq!(*error.kind(), SubmitErrorKind::TimedOut);
    assert_eq!(error.into_argument(), "mine");
    gate.open();
    let handle = pool.submit_timeout(|text: String| text, "mine".to_owned(), BOUND).unwrap();
    assert_eq!(outcome(handle).unwrap(), "mine");
}

#[test]
fn submit_waits_until_there_is_room() {
    let pool = full_pool();
    let gate = Gate::new();
    let handles = fill(&pool, &gate);
    let number = AtomicU32::new(0);
    thread::scope(|scope| {
        let submitter = scope.spawn(|| {
            number.store(processes::this_thread(), Ordering::Release);
            pool.submit(pass, gate.pass(9)).unwrap()
        });
        wait_until_it_sleeps(&number);
        assert!(!submitter.is_finished());
        gate.open();
        let _watchdog = Watchdog::new("a submitter that has room", BOUND);
        assert_eq!(outcome(submitter.join().unwrap()).unwrap(), 9);
    });
    for (number, handle) in (0..).zip(handles) {
        assert_eq!(outcome(handle).unwrap(), number);
    }
}

/// Far more threads wait for room than can have it at a time, some until a deadline.
#[test]
fn many_blocked_threads_submit_each_task_once() {
    const EACH: u64 = 60;
    let _watchdog = Watchdog::new("many threads and a short queue", BOUND);
    let pool = builder(2).queue_limit(2).build().unwrap();
    let submit = |thread: u64, number: u64| {
        if thread.is_multiple_of(2) {
            return pool.submit(next, number).unwrap();
        }
        loop {
            match pool.submit_timeout(next, number, Duration::from_micros(50)) {
                Ok(handle) => return handle,
                Err(error) => {
                    assert_eq!(*error.kind(), SubmitErrorKind::TimedOut);
                    assert_eq!(error.into_argument(), number);
                }
            }
        }
    };
    thread::scope(|scope| {
        for thread in 0..24 {
            let submit = &submit;
            scope.spawn(move || {
                for number in 0..EACH {
                    // Some wait for their outcome, some go on at once.
                    let handle = submit(thread, number);
                    if number % 3 == thread % 3 {
                        assert_eq!(outcome(handle).unwrap(), number + 1);
                    }
                }
            });
        }
    });
    pool.shutdown().unwrap();
    assert_eq!(pool.snapshot().succeeded, 24 * EACH);
}

fn next(number: u64) -> u64 {
    number + 1
}

/// The first thread that waits for room collects. The collector thread cannot take over.
#[test]
fn a_blocked_thread_collects_when_another_gives_up() {
    let pool = full_pool();
    let (gate, other) = (Gate::new(), Gate::new());
    let first = pool.submit(pass, other.pass(0)).unwrap();
    other.wait_for_arrivals(1);
    let blocks = Arc::new(Blocks::default());
    let mut first = pin!(first.into_future());
    let waker = Arc::clone(&blocks).into();
    assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    other.open();
    wait_until("the collector thread to block", BOUND, || blocks.entered.load(Ordering::Acquire));
    let handles = fill(&pool, &gate);
    let (one, two) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        let _opens = OpensAtTheEnd(&blocks);
        let gives_up = scope.spawn(|| {
            one.store(processes::this_thread(), Ordering::Release);
            pool.submit_timeout(pass, gate.pass(8), Duration::from_secs(1)).unwrap_err()
        });
        wait_until_it_sleeps(&one);
        let submitter = scope.spawn(|| {
            two.store(processes::this_thread(), Ordering::Release);
            pool.submit_timeout(pass, gate.pass(9), BOUND)
        });
        wait_until_it_sleeps(&two);
        assert_eq!(*gives_up.join().unwrap().kind(), SubmitErrorKind::TimedOut);
        gate.open();
        assert_eq!(outcome(submitter.join().unwrap().unwrap()).unwrap(), 9);
    });
    for (number, handle) in (0..).zip(handles) {
        assert_eq!(outcome(handle).unwrap(), number);
    }
}

/// A waker that blocks its thread until it is opened.
#[derive(Default)]
struct Blocks {
    entered: AtomicBool,
    open: AtomicBool,
}

impl Wake for Blocks {
    fn wake(self: Arc<Self>) {
        self.entered.store(true, Ordering::Release);
        wait_until("the end of a test", 4 * BOUND, || self.open.load(Ordering::Acquire));
    }
}

struct OpensAtTheEnd<'a>(&'a Blocks);

impl Drop for OpensAtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.open.store(true, Ordering::Release);
    }
}

/// Over the ipc link, where no blocked thread collects: exactly one is notified of the room.
#[test]
fn a_broadcast_that_panics_leaves_its_room_to_others() {
    fn panics_in_a_broadcast() -> Option<String> {
        assert_ne!(thread::current().name(), Some("broadcasts"), "a hook that panics");
        None
    }
    let pool = builder(1).queue_limit(LIMIT).link(Link::Ipc);
    let pool = pool.trace_context(panics_in_a_broadcast).build().unwrap();
    let gate = Gate::new();
    let handles = fill(&pool, &gate);
    let (one, two) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        let broadcast = thread::Builder::new().name("broadcasts".to_owned());
        let broadcast = broadcast.spawn_scoped(scope, || {
            one.store(processes::this_thread(), Ordering::Release);
            pool.broadcast(pass, gate.pass(8)).map(drop)
        });
        wait_until_it_sleeps(&one);
        let submitter = scope.spawn(|| {
            two.store(processes::this_thread(), Ordering::Release);
            pool.submit(pass, gate.pass(9)).unwrap()
        });
        wait_until_it_sleeps(&two);
        let watchdog = Watchdog::new("a submitter that has the room of another", BOUND);
        assert!(handles[2].cancel());
        broadcast.unwrap().join().unwrap_err();
        let handle = submitter.join().unwrap();
        drop(watchdog);
        gate.open();
        assert_eq!(outcome(handle).unwrap(), 9);
    });
}

#[test]
fn a_cancelled_task_makes_room() {
    let pool = full_pool();
    let gate = Gate::new();
    let handles = fill(&pool, &gate);
    assert!(handles[2].cancel());
    let last = pool.try_submit(pass, gate.pass(4)).unwrap();
    assert!(pool.try_submit(pass, gate.pass(5)).unwrap_err().is_full());
    gate.open();
    assert_eq!(outcome(last).unwrap(), 4);
}

#[test]
fn a_shutdown_returns_arguments_to_blocked_submitters() {
    for mode in [Shutdown::Drain, Shutdown::CancelPending, Shutdown::Terminate, Shutdown::Kill] {
        let pool = full_pool();
        let gate = Gate::new();
        let handles = fill(&pool, &gate);
        let threads: Vec<_> = (0..3).map(|_| AtomicU32::new(0)).collect();
        thread::scope(|scope| {
            let submitters: Vec<_> = threads
                .iter()
                .zip(10..)
                .map(|(thread, number)| {
                    let pool = &pool;
                    scope.spawn(move || {
                        thread.store(processes::this_thread(), Ordering::Release);
                        pool.submit(|number: u64| number, number).unwrap_err()
                    })
                })
                .collect();
            threads.iter().for_each(wait_until_it_sleeps);
            let _watchdog =
                Watchdog::new(format!("a shutdown ({mode:?}) with a full queue"), BOUND);
            let shutdown = scope.spawn(|| pool.shutdown_with(mode, BOUND).unwrap());
            for (number, submitter) in (10..).zip(submitters) {
                let error = submitter.join().unwrap();
                assert_eq!(*error.kind(), SubmitErrorKind::PoolClosed, "{mode:?}");
                assert_eq!(error.into_argument(), number);
            }
            gate.open();
            shutdown.join().unwrap();
        });
        assert!(handles.iter().all(brigade::Handle::is_done), "{mode:?}");
    }
}

#[test]
fn wake_ups_of_a_stopped_worker_do_not_pile_up() {
    let pool = builder(1).build().unwrap();
    pool.warm_up().unwrap();
    let pid = pool.worker_pids()[0];
    assert!(processes::hit_child(pid, processes::Signal::STOP));
    wait_until("a stopped worker", BOUND, || processes::is_stopped(pid));
    let watchdog = Watchdog::new("submits to a worker that does not listen", BOUND);
    let handles: Vec<_> =
        (0..50_000).map(|number| pool.submit(|number: u64| number, number).unwrap()).collect();
    drop(watchdog);
    assert!(processes::hit_child(pid, processes::Signal::CONT));
    for (number, handle) in (0..).zip(handles) {
        assert_eq!(outcome(handle).unwrap(), number);
    }
}

#[test]
fn a_full_queue_amid_crashes_loses_and_repeats_no_task() {
    fn may_crash(number: u64) -> u64 {
        if number.is_multiple_of(100) {
            std::process::abort();
        }
        number
    }
    let pool = builder(2).queue_limit(2).build().unwrap();
    let _watchdog = Watchdog::new("submitters at a full queue", 2 * BOUND);
    thread::scope(|scope| {
        for thread in 0..6_u64 {
            let pool = &pool;
            scope.spawn(move || {
                let submit = |number: u64| match thread % 3 {
                    0 => pool.submit(may_crash, number).unwrap(),
                    1 => pool.submit_timeout(may_crash, number, BOUND).unwrap(),
                    _ => loop {
                        match pool.try_submit(may_crash, number) {
                            Ok(handle) => break handle,
                            Err(error) => assert!(error.is_full(), "{error}"),
                        }
                        thread::yield_now();
                    },
                };
                let numbers = 1_000 * thread + 1..=1_000 * thread + 300;
                let handles: Vec<_> = numbers.map(|number| (number, submit(number))).collect();
                for (number, handle) in handles {
                    match outcome(handle) {
                        Ok(answer) => assert_eq!(answer, number),
                        Err(error) => {
                            assert!(error.is_worker_death() && number.is_multiple_of(100));
                        }
                    }
                }
            });
        }
    });
}

/// Blocks until the thread that stored its id sleeps, which it does as soon as it waits for room.
fn wait_until_it_sleeps(thread: &AtomicU32) {
    wait_until("a submitter to wait for room", BOUND, || {
        let number = thread.load(Ordering::Acquire);
        number != 0 && processes::thread_sleeps(number)
    });
}
