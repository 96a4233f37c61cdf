//! A handle is a future that needs no runtime.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use brigade::{Handle, Pool, Shutdown, TaskError};
use brigade_integration::{builder, pool};
use brigade_testkit::faults::{aborts, hangs};
use brigade_testkit::processes::{Signal, hit_child};
use brigade_testkit::{BOUND, Gate, Watchdog, outcome, pass, pause, wait_until};

fn square(number: u64) -> u64 {
    number * number
}

/// Wakes a thread and counts the wake-ups.
struct Bell {
    thread: Thread,
    rings: AtomicUsize,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rings.fetch_add(1, Ordering::AcqRel);
        self.thread.unpark();
    }
}

impl Bell {
    fn new() -> Arc<Self> {
        Arc::new(Self { thread: thread::current(), rings: AtomicUsize::new(0) })
    }
}

/// The smallest executor: polls after each wake-up, and only then.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let bell = Bell::new();
    let waker = Waker::from(Arc::clone(&bell));
    let begin = Instant::now();
    let mut heard = 0;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        while bell.rings.load(Ordering::Acquire) == heard {
            assert!(begin.elapsed() < BOUND, "a future was not woken for {BOUND:?}");
            thread::park_timeout(BOUND);
        }
        heard = bell.rings.load(Ordering::Acquire);
    }
}

/// Ready when all of its handles are.
struct Join(Vec<Result<Handle<u64>, Result<u64, TaskError>>>);

impl Future for Join {
    type Output = Vec<Result<u64, TaskError>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut pending = false;
        for slot in &mut self.0 {
            if let Ok(handle) = slot {
                match Pin::new(handle).poll(context) {
                    Poll::Ready(outcome) => *slot = Err(outcome),
                    Poll::Pending => pending = true,
                }
            }
        }
        if pending {
            return Poll::Pending;
        }
        Poll::Ready(self.0.drain(..).map(|slot| slot.expect_err("nothing is pending")).collect())
    }
}

#[test]
fn a_handle_is_awaited() {
    let pool = pool(1);
    let sum = block_on(async {
        pool.submit(square, 3).unwrap().await.unwrap()
            + pool.submit(square, 4).unwrap().await.unwrap()
    });
    assert_eq!(sum, 25);
}

#[test]
fn a_failure_is_awaited_like_a_value() {
    let pool = pool(1);
    let error = block_on(pool.submit(aborts, ()).unwrap()).unwrap_err();
    assert!(error.is_worker_death());
}

#[test]
fn a_pending_future_is_woken_once_by_its_outcome() {
    let pool = pool(1);
    let gate = Gate::new();
    let mut handle = pool.submit(pass, gate.pass(5)).unwrap();
    let bell = Bell::new();
    let waker = Waker::from(Arc::clone(&bell));
    let mut context = Context::from_waker(&waker);
    gate.wait_for_arrivals(1);
    assert!(Pin::new(&mut handle).poll(&mut context).is_pending());
    assert_eq!(bell.rings.load(Ordering::Acquire), 0);
    gate.open();
    wait_until("the waker", BOUND, || bell.rings.load(Ordering::Acquire) == 1);
    assert!(matches!(Pin::new(&mut handle).poll(&mut context), Poll::Ready(Ok(5))));
    assert_eq!(bell.rings.load(Ordering::Acquire), 1);
}

#[test]
fn only_the_last_waker_is_woken() {
    let pool = pool(1);
    let gate = Gate::new();
    let mut handle = pool.submit(pass, gate.pass(5)).unwrap();
    let (first, last) = (Bell::new(), Bell::new());
    for bell in [&first, &last] {
        let waker = Waker::from(Arc::clone(bell));
        assert!(Pin::new(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    gate.open();
    wait_until("the last waker", BOUND, || last.rings.load(Ordering::Acquire) == 1);
    assert_eq!(first.rings.load(Ordering::Acquire), 0);
    assert_eq!(handle.try_get().unwrap().unwrap(), 5, "a future may be taken as a handle");
}

#[test]
fn many_futures_are_joined() {
    let pool = pool(2);
    let handles = (0..200).map(|number| Ok(pool.submit(square, number).unwrap())).collect();
    let outcomes = block_on(Join(handles));
    for (number, outcome) in (0..).zip(outcomes) {
        assert_eq!(outcome.unwrap(), number * number);
    }
}

#[test]
fn a_future_ends_with_its_pool() {
    let pool = pool(1);
    let handle = pool.submit(hangs, ()).unwrap();
    thread::scope(|scope| {
        let awaiting = scope.spawn(|| block_on(handle));
        pool.shutdown_with(Shutdown::Kill, BOUND).unwrap();
        awaiting.join().unwrap().unwrap_err();
    });
}

#[test]
fn dropping_a_future_is_harmless() {
    let pool = pool(1);
    let gate = Gate::new();
    let mut handle = pool.submit(pass, gate.pass(5)).unwrap();
    let waker = Waker::from(Bell::new());
    assert!(Pin::new(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
    drop(handle);
    gate.open();
    assert_eq!(block_on(pool.submit(square, 5).unwrap()).unwrap(), 25);
}

/// Drops a pool when it is woken, as the last owner of a task does in an executor.
struct LastOwner {
    pool: Mutex<Option<Pool>>,
    dropped: AtomicBool,
}

impl Wake for LastOwner {
    fn wake(self: Arc<Self>) {
        drop(self.pool.lock().unwrap().take());
        self.dropped.store(true, Ordering::Release);
    }
}

#[test]
fn a_waker_may_drop_the_pool_of_its_task() {
    let pool = pool(2);
    let gate = Gate::new();
    let mut handle = pool.submit(pass, gate.pass(5)).unwrap();
    gate.wait_for_arrivals(1);
    let owner = LastOwner { pool: Mutex::new(Some(pool)), dropped: AtomicBool::new(false) };
    let owner = Arc::new(owner);
    let waker = Waker::from(Arc::clone(&owner));
    assert!(Pin::new(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
    gate.open();
    wait_until("the drop to return", BOUND, || owner.dropped.load(Ordering::Acquire));
    assert_eq!(outcome(handle).unwrap(), 5);
}

/// Panics when it is woken.
struct Refuses(AtomicBool);

impl Wake for Refuses {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
        panic!("a waker's own fault");
    }
}

#[test]
fn a_panicking_waker_harms_neither_pool_nor_other_futures() {
    let _watchdog = Watchdog::new("a pool whose wakers panic", BOUND);
    let pool = pool(1);
    for end in [Ending::Answer, Ending::Death] {
        let wakers: [_; 2] = std::array::from_fn(|_| Arc::new(Refuses(AtomicBool::new(false))));
        let gate = Gate::new();
        let mut handles = [1, 2].map(|number| pool.submit(pass, gate.pass(number)).unwrap());
        gate.wait_for_arrivals(1);
        for (handle, waker) in handles.iter_mut().zip(&wakers) {
            let waker = Waker::from(Arc::clone(waker));
            assert!(Pin::new(handle).poll(&mut Context::from_waker(&waker)).is_pending());
        }
        match end {
            Ending::Answer => gate.open(),
            Ending::Death => {
                assert!(hit_child(pool.worker_pids()[0], Signal::KILL));
                wait_until("the first waker", BOUND, || wakers[0].0.load(Ordering::Acquire));
                gate.open();
            }
        }
        // Nobody waits: the collector wakes one, or the reaper does, and the next one likewise.
        wait_until("both wakers", BOUND, || {
            wakers.iter().all(|waker| waker.0.load(Ordering::Acquire))
        });
        let [first, second] = handles.map(outcome);
        assert_eq!(first.is_err(), matches!(end, Ending::Death));
        assert_eq!(second.unwrap(), 2);
    }
    assert_eq!(outcome(pool.submit(square, 5).unwrap()).unwrap(), 25);
}

/// The ending of a task whose waker panics.
enum Ending {
    Answer,
    Death,
}

/// Calls a function when it is woken, once.
struct Calls(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        let call = self.0.lock().unwrap().take();
        if let Some(call) = call {
            call();
        }
    }
}

/// Polls a handle with a waker that calls `call`.
fn with_waker(handle: &mut Handle<u64>, call: impl FnOnce() + Send + 'static) {
    let waker = Waker::from(Arc::new(Calls(Mutex::new(Some(Box::new(call))))));
    let poll = Pin::new(handle).poll(&mut Context::from_waker(&waker));
    assert!(poll.is_pending(), "the task is not there yet");
}

#[test]
fn a_waker_may_wait_for_another_task_while_a_caller_listens() {
    let _watchdog = Watchdog::new("a wait inside a waker", BOUND);
    let pool = Arc::new(pool(2));
    pool.warm_up().unwrap();
    for _ in 0..3 {
        let gate = Gate::new();
        let (mut first, second) =
            (pool.submit(pass, gate.pass(1)).unwrap(), pool.submit(pass, gate.pass(2)).unwrap());
        let (inner, (sender, waited)) = (Arc::clone(&pool), channel());
        with_waker(&mut first, move || {
            sender.send(outcome(inner.submit(square, 3).unwrap())).unwrap();
        });
        thread::scope(|scope| {
            scope.spawn(|| gate.open());
            // This thread listens, for the first one as well.
            assert_eq!(outcome(second).unwrap(), 2);
        });
        assert_eq!(waited.recv_timeout(BOUND).unwrap().unwrap(), 9);
        assert_eq!(outcome(first).unwrap(), 1);
    }
}

#[test]
fn a_waker_may_wait_for_room_in_the_queue() {
    let _watchdog = Watchdog::new("a submit inside a waker", BOUND);
    let pool = Arc::new(builder(1).queue_limit(1).build().unwrap());
    pool.warm_up().unwrap();
    let gate = Gate::new();
    let mut first = pool.submit(pass, gate.pass(1)).unwrap();
    let (inner, (sender, submitted)) = (Arc::clone(&pool), channel());
    with_waker(&mut first, move || {
        let handles: Vec<_> = (0..200).map(|n| inner.submit(square, n).unwrap()).collect();
        sender.send(handles).unwrap();
    });
    gate.open();
    // Nobody else handles outcomes meanwhile.
    let handles = submitted.recv_timeout(BOUND).unwrap();
    for (number, handle) in (0..).zip(handles) {
        assert_eq!(outcome(handle).unwrap(), number * number);
    }
}

#[test]
fn a_waker_of_a_task_whose_worker_died_delays_no_deadline() {
    let _watchdog = Watchdog::new("a deadline beside a waker that blocks", BOUND);
    let pool = Arc::new(pool(2));
    let mut dies = pool.submit(|(): ()| -> u64 { std::process::abort() }, ()).unwrap();
    let (release, blocked) = channel::<()>();
    with_waker(&mut dies, move || {
        let _ = blocked.recv();
    });
    wait_until("the death", BOUND, || dies.is_done());
    let late = pool.task(hangs).deadline(Duration::from_millis(50)).submit(()).unwrap();
    assert!(outcome(late).unwrap_err().is_deadline());
    drop(release);
    outcome(dies).unwrap_err();
}

/// One look finds the outcomes of the listener and of other callers, of which the listener may
/// choose one to take over.
#[test]
fn a_caller_waits_for_no_waker_although_others_leave_together() {
    let _watchdog = Watchdog::new("a caller beside a waker that blocks", 4 * BOUND);
    for _ in 0..5 {
        let pool = pool(2);
        let [woken, last, many] = [(); 3].map(|()| Gate::new());
        for number in 0..500 {
            outcome(pool.submit(square, number).unwrap()).unwrap();
        }
        let mut blocks = pool.submit(pass, woken.pass(1)).unwrap();
        let (release, blocked) = channel::<()>();
        let (sender, begun) = channel();
        with_waker(&mut blocks, move || {
            sender.send(()).unwrap();
            let _ = blocked.recv();
        });
        woken.open();
        begun.recv_timeout(BOUND).unwrap();
        let listener = pool.submit(pass, many.pass(1)).unwrap();
        let last_one = pool.submit(pass, last.pass(1)).unwrap();
        many.wait_for_arrivals(1);
        last.wait_for_arrivals(1);
        let others = (0..8).map(|number| pool.submit(square, number).unwrap());
        let handles: Vec<_> = [listener, last_one].into_iter().chain(others).collect();
        thread::scope(|scope| {
            let mut waits = Vec::new();
            for handle in handles {
                waits.push(scope.spawn(|| outcome(handle).unwrap()));
                // They begin to wait in this order.
                pause(Duration::from_millis(5));
            }
            let last_one = waits.remove(1);
            many.open();
            for wait in waits {
                wait.join().unwrap();
            }
            last.open();
            wait_until("the last outcome", BOUND / 2, || last_one.is_finished());
        });
        drop(release);
        outcome(blocks).unwrap();
    }
}

#[test]
fn a_blocking_waker_delays_no_shutdown() {
    let _watchdog = Watchdog::new("the end of a pool whose waker blocks", BOUND);
    let pool = builder(1).stop_grace(Duration::from_millis(50)).build().unwrap();
    let gate = Gate::new();
    let mut task = pool.submit(pass, gate.pass(1)).unwrap();
    let (release, blocked) = channel::<()>();
    let (sender, begun) = channel();
    with_waker(&mut task, move || {
        sender.send(()).unwrap();
        let _ = blocked.recv();
    });
    gate.open();
    begun.recv_timeout(BOUND).unwrap();
    pool.shutdown_with(Shutdown::Kill, Duration::from_millis(50)).unwrap();
    drop(pool);
    drop(release);
    assert_eq!(outcome(task).unwrap(), 1);
}

#[test]
fn a_shutdown_by_a_waker_reports_when_the_pool_ended() {
    let _watchdog = Watchdog::new("a shutdown by a waker", BOUND);
    let pool = Arc::new(pool(1));
    let gate = Gate::new();
    let mut task = pool.submit(pass, gate.pass(1)).unwrap();
    let inner = Arc::clone(&pool);
    with_waker(&mut task, move || {
        inner.shutdown_with(Shutdown::Drain, BOUND).unwrap();
    });
    gate.wait_for_arrivals(1);
    let began = Instant::now();
    gate.open();
    wait_until("the end", BOUND, || pool.worker_pids().is_empty());
    let ended = began.elapsed();
    pause(Duration::from_millis(200));
    let report = pool.shutdown().unwrap();
    assert!(report.elapsed <= ended, "{ended:?}: {report:?}");
}
