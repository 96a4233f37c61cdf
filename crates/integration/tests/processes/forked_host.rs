//! A host that forks without `exec`: its copy cannot use the pool, and harms nobody by trying.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use brigade::{
    Handle, Link, Pool, PoolError, Shutdown, SubmitErrorKind, TaskErrorKind, TaskState, Until,
    as_completed, wait,
};
use brigade_integration::{builder, pool};
use brigade_testkit::faults::echoes;
use brigade_testkit::{
    BOUND, Gate, Side, Watchdog, copy_process, outcome, pass, processes, wait_until,
};

/// Large enough for the arenas.
const LARGE: usize = 100_000;

fn square(number: u64) -> u64 {
    number * number
}

fn payload(number: u8) -> Vec<u8> {
    vec![number; LARGE]
}

fn warm(workers: usize) -> Pool {
    let pool = pool(workers);
    pool.warm_up().unwrap();
    pool
}

fn is_refused<R: std::fmt::Debug>(outcome: Result<R, brigade::TaskError>) {
    let error = outcome.unwrap_err();
    assert_eq!(*error.kind(), TaskErrorKind::Forked);
    assert!(error.to_string().contains("build a pool after the fork"), "{error}");
}

/// Uses every function of a pool.
fn use_the_pool(pool: &Pool) {
    let refused = pool.submit(square, 1).unwrap_err();
    assert_eq!(*refused.kind(), SubmitErrorKind::Forked);
    assert!(refused.to_string().contains("build a pool after the fork"), "{refused}");
    let refused = pool.try_submit(echoes, payload(1)).unwrap_err();
    assert_eq!(*refused.kind(), SubmitErrorKind::Forked);
    let refused = pool.submit_timeout(square, 1, Duration::ZERO).unwrap_err();
    assert_eq!(*refused.kind(), SubmitErrorKind::Forked);
    let refused = pool.task(square).deadline(BOUND).submit(1).unwrap_err();
    assert_eq!(*refused.kind(), SubmitErrorKind::Forked);
    let refused = pool.submit::<_, u64, u64, _>("square", 1).unwrap_err();
    assert_eq!(*refused.kind(), SubmitErrorKind::Forked);
    assert_eq!(*pool.broadcast(square, 1).unwrap_err().kind(), SubmitErrorKind::Forked);
    let mut results = pool.map(square, 0..1000);
    is_refused(results.next().unwrap());
    assert!(results.next().is_none());
    is_refused(pool.map_unordered(echoes, vec![payload(1); 10]).next().unwrap());
    let mut with_inputs = pool.map(square, 3..6).with_inputs();
    let (input, outcome) = with_inputs.next().unwrap();
    assert_eq!(input, 3);
    is_refused(outcome);
    assert!(with_inputs.next().is_none());
    for result in [pool.warm_up(), pool.resize(3), pool.quiesce()] {
        assert!(matches!(result, Err(PoolError::Forked)), "{result:?}");
    }
    for result in [pool.shutdown(), pool.shutdown_with(Shutdown::Kill, Duration::ZERO)] {
        assert!(matches!(result, Err(PoolError::Forked)), "{result:?}");
    }
    assert_eq!(pool.worker_pids(), [0; 0]);
    assert_eq!((pool.worker_restarts(), pool.workers(), pool.name()), (0, 2, "test"));
    assert!(!format!("{pool:?}").is_empty());
}

/// Uses every function of a handle.
fn use_the_handle(mut handle: Handle<Vec<u8>>) {
    assert!(handle.is_done());
    assert_eq!((handle.state(), handle.running_for()), (TaskState::Failed, None));
    assert!(!handle.cancel() && !handle.kill());
    is_refused(handle.try_get().unwrap());
    is_refused(handle.wait_timeout(BOUND).unwrap());
    for until in [Until::All, Until::First, Until::FirstError] {
        assert_eq!(wait([&handle], until, None).done.len(), 1);
    }
    let called = Arc::new(AtomicBool::new(false));
    let callback = Arc::clone(&called);
    handle.on_done(move |outcome| {
        is_refused(outcome);
        callback.store(true, Ordering::Relaxed);
    });
    assert!(called.load(Ordering::Relaxed));
    match pin!(&mut handle).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => is_refused(outcome),
        Poll::Pending => panic!("the outcome will never come"),
    }
    for handle in as_completed([handle]) {
        is_refused(handle.wait());
    }
}

#[test]
fn every_call_in_a_fork_fails_and_the_original_goes_on() {
    let _watchdog = Watchdog::new("a host that forks", 3 * BOUND);
    let pool = warm(2);
    let workers = pool.worker_pids();
    let gate = Gate::new();
    let waits = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    let [done, dropped, queued] =
        [1, 2, 3].map(|number| pool.submit(echoes, payload(number)).unwrap());
    wait_until("the results", BOUND, || {
        wait([&done, &dropped, &queued], Until::All, Duration::ZERO).pending.is_empty()
    });
    let mut ordered = pool.map(echoes, (0..100).map(payload)).chunk(1).window(4);
    assert_eq!(ordered.next().unwrap().unwrap(), payload(0));
    let mut completed =
        as_completed([4, 5].map(|number| pool.submit(echoes, payload(number)).unwrap()));
    let more = pool.submit(echoes, payload(6)).unwrap();
    let host = &pool;
    let copy = match copy_process() {
        Side::Original(copy) => copy,
        Side::Copy(copy) => copy.end_after(move || {
            use_the_handle(done);
            use_the_handle(more);
            drop((dropped, queued));
            is_refused(ordered.next().unwrap());
            assert!(ordered.next().is_none());
            drop(ordered);
            for handle in completed.by_ref() {
                use_the_handle(handle);
            }
            drop(completed);
            use_the_pool(host);
            drop(waits);
        }),
    };
    copy.assert_success();
    for (number, handle) in [(1, done), (2, dropped), (3, queued), (6, more)] {
        assert_eq!(outcome(handle).unwrap(), payload(number));
    }
    for (number, result) in (1..).zip(ordered) {
        assert_eq!(result.unwrap(), payload(number));
    }
    while let Ok(Some(handle)) = completed.next_timeout(BOUND) {
        assert_eq!(outcome(handle).unwrap().len(), LARGE);
    }
    gate.open();
    assert_eq!(outcome(waits).unwrap(), 1);
    assert_eq!(pool.worker_pids(), workers, "a worker was replaced");
    pool.shutdown().unwrap();
    wait_until("the end of all processes", BOUND, || processes::children().is_empty());
}

#[test]
fn forks_that_use_a_busy_pool_change_no_result() {
    let _watchdog = Watchdog::new("forks of a busy host", 3 * BOUND);
    let pool = warm(2);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let submitters = [0, 1].map(|number| {
            let (pool, stop) = (&pool, &stop);
            scope.spawn(move || {
                let mut round = 0;
                while !stop.load(Ordering::Relaxed) {
                    round += 1;
                    let handles: Vec<_> =
                        (0..30).map(|input| pool.submit(square, input + round).unwrap()).collect();
                    let large = pool.submit(echoes, payload(number)).unwrap();
                    for (input, handle) in (round..).zip(handles) {
                        assert_eq!(outcome(handle).unwrap(), input * input);
                    }
                    assert_eq!(outcome(large).unwrap(), payload(number));
                }
            })
        });
        for _ in 0..40 {
            let handle = pool.submit(echoes, payload(9)).unwrap();
            let copy = match copy_process() {
                Side::Original(copy) => copy,
                // Locks that another thread held at the fork stay locked in the copy.
                Side::Copy(copy) => copy.end_after(|| {
                    use_the_pool(&pool);
                    use_the_handle(handle);
                }),
            };
            copy.assert_success();
            assert_eq!(outcome(handle).unwrap(), payload(9));
        }
        stop.store(true, Ordering::Relaxed);
        for submitter in submitters {
            submitter.join().unwrap();
        }
    });
    assert_eq!(pool.worker_restarts(), 0);
}

/// A submitter that waits for room collects outcomes, and so runs wakers.
#[test]
fn a_submission_in_which_a_waker_forks_fails_in_the_copy() {
    /// Forks on the thread with this number.
    struct Forks(u32, Mutex<Option<Side>>);
    impl Wake for Forks {
        fn wake(self: Arc<Self>) {
            if processes::this_thread() == self.0 {
                *self.1.lock().unwrap() = Some(copy_process());
            }
        }
    }
    let _watchdog = Watchdog::new("a waker that forks", 3 * BOUND);
    let me = processes::this_thread();
    let has_forked = (0..100).any(|_| {
        let pool = builder(1).link(Link::Ring).queue_limit(1).build().unwrap();
        let gate = Arc::new(Gate::new());
        let mut first = pool.submit(pass, gate.pass(1)).unwrap();
        gate.wait_for_arrivals(1);
        let forks = Arc::new(Forks(me, Mutex::default()));
        let waker = Waker::from(Arc::clone(&forks));
        assert!(pin!(&mut first).poll(&mut Context::from_waker(&waker)).is_pending());
        let others: Vec<_> = std::iter::from_fn(|| pool.try_submit(square, 2).ok()).collect();
        let opener = Arc::clone(&gate);
        let opener = thread::spawn(move || {
            wait_until("a submitter that waits", BOUND, || processes::thread_sleeps(me));
            opener.open();
        });
        let submitted = pool.submit(square, 3);
        let side = forks.1.lock().unwrap().take();
        let has_forked = match side {
            Some(Side::Copy(copy)) => copy.end_after(|| {
                assert_eq!(*submitted.unwrap_err().kind(), SubmitErrorKind::Forked);
            }),
            Some(Side::Original(copy)) => {
                copy.assert_success();
                true
            }
            None => false,
        };
        opener.join().unwrap();
        assert_eq!(outcome(submitted.unwrap()).unwrap(), 9);
        assert!(others.into_iter().all(|other| outcome(other).unwrap() == 4));
        has_forked
    });
    assert!(has_forked, "the waker never ran on the thread that submits");
}

#[test]
fn a_fork_may_build_a_pool_of_its_own() {
    let _watchdog = Watchdog::new("a pool of a fork's own", 3 * BOUND);
    let ours = warm(1);
    let copy = match copy_process() {
        Side::Original(copy) => copy,
        Side::Copy(copy) => copy.end_after(|| {
            drop(ours);
            let own = pool(1);
            let handle = own.submit(echoes, payload(7)).unwrap();
            assert_eq!(outcome(handle).unwrap(), payload(7));
            own.shutdown().unwrap();
        }),
    };
    copy.assert_success();
    assert_eq!(outcome(ours.submit(square, 3).unwrap()).unwrap(), 9);
}
