//! A pool ends in the requested way, in bounded time, whatever its workers do.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use brigade::metrics::WorkerState;
use brigade::{Pool, PoolError, Shutdown, SubmitErrorKind, TaskErrorKind};
use brigade_integration::{builder, pool, worker_died};
use brigade_testkit::faults::{
    How, SpoilsDecoding, aborts, echoes, hangs, hangs_at_exit, panics_with_str, returns_bytes,
    returns_what_spoils_encoding, sleeps, stops_itself, takes_what_spoils_decoding,
};
use brigade_testkit::{BOUND, Gate, PATIENCE, Watchdog, outcome, pass, processes, wait_until};
use brigade_testkit_sys::misdeeds::ignore_termination;

/// Delay that a bounded shutdown may have on a busy machine.
const SLACK: Duration = Duration::from_secs(3 * PATIENCE);

const MODES: [Shutdown; 4] =
    [Shutdown::Drain, Shutdown::CancelPending, Shutdown::Terminate, Shutdown::Kill];

fn square(number: u64) -> u64 {
    number * number
}

fn watch(what: &str) -> Watchdog {
    Watchdog::new(what, BOUND)
}

/// Builds a pool whose workers ignore SIGTERM.
fn deaf_pool(grace: Duration) -> Pool {
    let builder = builder(2).stop_grace(grace).initializer(|(): ()| ignore_termination(), ());
    builder.build().unwrap()
}

#[test]
fn a_drain_runs_everything_that_was_accepted() {
    let pool = pool(2);
    // A worker that is still starting when the last task is done would be killed, and counted.
    pool.warm_up().unwrap();
    let handles: Vec<_> = (0..200).map(|number| pool.submit(square, number).unwrap()).collect();
    let _watchdog = watch("a drain");
    let report = pool.shutdown().unwrap();
    assert_eq!(
        (report.cancelled, report.failed, report.killed, report.workers_killed),
        (0, 0, 0, 0)
    );
    for (number, handle) in (0..).zip(handles) {
        assert!(handle.is_done());
        assert_eq!(outcome(handle).unwrap(), number * number);
    }
    assert!(pool.worker_pids().is_empty());
}

#[test]
fn closing_a_pool_does_not_wait_and_what_was_accepted_runs() {
    let _watchdog = watch("the end of a closed pool");
    let pool = pool(1);
    let gate = Gate::new();
    let running = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    let queued = pool.submit(square, 2).unwrap();
    pool.close();
    pool.close();
    assert!(!running.is_done(), "the gate is closed, so nothing was waited for");
    let refused = pool.submit(square, 3).unwrap_err();
    assert_eq!(*refused.kind(), SubmitErrorKind::PoolClosed);
    assert_eq!(refused.into_argument(), 3);
    gate.open();
    assert_eq!((outcome(running).unwrap(), outcome(queued).unwrap()), (1, 4));
    let report = pool.shutdown().unwrap();
    assert_eq!((report.cancelled, report.killed, report.workers_killed), (0, 0, 0));
}

#[test]
fn an_unused_pool_ends_at_once() {
    let _watchdog = watch("the end of pools that were not used");
    drop(pool(4));
    let pool = pool(4);
    let report = pool.shutdown().unwrap();
    assert_eq!((report.workers_stopped, report.workers_killed), (0, 0));
}

#[test]
fn a_submit_after_a_shutdown_returns_the_argument() {
    let pool = pool(1);
    pool.shutdown().unwrap();
    let error = pool.submit(|text: String| text, "mine".to_owned()).unwrap_err();
    assert_eq!(*error.kind(), SubmitErrorKind::PoolClosed);
    assert_eq!(error.into_argument(), "mine");
    assert!(matches!(pool.warm_up(), Err(PoolError::Closed)));
    let error = pool.map(square, 0..3).next().unwrap().unwrap_err();
    assert_eq!(*error.kind(), TaskErrorKind::PoolClosed);
}

#[test]
fn cancel_pending_lets_running_tasks_finish() {
    let pool = pool(1);
    let gate = Gate::new();
    let running = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    let pending: Vec<_> = (0..10).map(|number| pool.submit(square, number).unwrap()).collect();
    let _watchdog = watch("a shutdown that cancels");
    let report = thread::scope(|scope| {
        let shutdown = scope.spawn(|| pool.shutdown_with(Shutdown::CancelPending, BOUND).unwrap());
        for handle in pending {
            assert!(outcome(handle).unwrap_err().is_cancelled());
        }
        assert!(!running.is_done());
        gate.open();
        shutdown.join().unwrap()
    });
    assert_eq!(outcome(running).unwrap(), 1);
    assert_eq!(
        (report.finished, report.cancelled, report.killed, report.workers_killed),
        (1, 10, 0, 0)
    );
}

#[test]
fn terminate_ends_running_tasks_by_sigterm_in_time() {
    let pool = pool(2);
    pool.warm_up().unwrap();
    let pids = pool.worker_pids();
    let running = [(); 2].map(|()| pool.submit(hangs, ()).unwrap());
    let pending = pool.submit(square, 3).unwrap();
    let _watchdog = watch("a shutdown that terminates");
    let report = pool.shutdown_with(Shutdown::Terminate, BOUND).unwrap();
    assert!(report.elapsed < BOUND / 2, "{report:?}");
    let outcomes = running.map(|handle| outcome(handle).unwrap_err());
    let begun = outcomes.iter().filter(|error| *error.kind() == TaskErrorKind::Killed).count();
    let cancelled = outcomes.iter().filter(|error| error.is_cancelled()).count();
    assert_eq!(begun + cancelled, 2, "{outcomes:?}");
    assert!(outcome(pending).unwrap_err().is_cancelled());
    assert!(pids.iter().all(|pid| !processes::is_alive(*pid)));
    assert_eq!(report.workers_killed, 0, "SIGTERM was enough");
}

#[test]
fn kill_ends_everything_at_once() {
    let pool = pool(2);
    let gate = Gate::new();
    let running: Vec<_> =
        (0..2).map(|number| pool.submit(pass, gate.pass(number)).unwrap()).collect();
    gate.wait_for_arrivals(2);
    let pending = pool.submit(square, 3).unwrap();
    let _watchdog = watch("a shutdown that kills");
    let report = pool.shutdown_with(Shutdown::Kill, BOUND).unwrap();
    for handle in running {
        assert_eq!(*outcome(handle).unwrap_err().kind(), TaskErrorKind::Killed);
    }
    assert!(outcome(pending).unwrap_err().is_cancelled());
    assert_eq!((report.killed, report.cancelled, report.workers_killed), (2, 1, 2));
    assert!(report.elapsed < SLACK, "{report:?}");
}

#[test]
fn a_drain_that_takes_too_long_escalates() {
    let pool = pool(1);
    let gate = Gate::new();
    let stuck = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    let _watchdog = watch("a drain with a timeout");
    let timeout = Duration::from_millis(100);
    let report = pool.shutdown_with(Shutdown::Drain, timeout).unwrap();
    assert!(report.elapsed >= timeout && report.elapsed < SLACK, "{report:?}");
    assert_eq!(*outcome(stuck).unwrap_err().kind(), TaskErrorKind::Killed);
}

#[test]
fn a_stronger_shutdown_overtakes_a_weaker_one() {
    let pool = pool(1);
    let gate = Gate::new();
    let stuck = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    let _watchdog = watch("a drain that is overtaken by a kill");
    thread::scope(|scope| {
        let drain = scope.spawn(|| pool.shutdown().unwrap());
        wait_until("the drain to begin", BOUND, || {
            matches!(pool.warm_up(), Err(PoolError::Closed))
        });
        let kill = pool.shutdown_with(Shutdown::Kill, BOUND).unwrap();
        assert_eq!(drain.join().unwrap(), kill);
    });
    assert_eq!(*outcome(stuck).unwrap_err().kind(), TaskErrorKind::Killed);
}

#[test]
fn a_shutdown_may_be_repeated_by_several_threads() {
    let pool = pool(2);
    let handles: Vec<_> = (0..20).map(|_| pool.submit(sleeps, 2).unwrap()).collect();
    let _watchdog = watch("shutdowns side by side");
    let reports: Vec<_> = thread::scope(|scope| {
        let callers: Vec<_> = (0..4).map(|_| scope.spawn(|| pool.shutdown().unwrap())).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    let again = pool.shutdown().unwrap();
    assert!(reports.iter().all(|report| *report == again), "{reports:?} {again:?}");
    assert!(handles.into_iter().all(|handle| outcome(handle).is_ok()));
}

#[test]
fn a_drop_drains_while_tasks_run() {
    let pool = pool(2);
    let gate = Gate::new();
    let handles: Vec<_> =
        (0..10).map(|number| pool.submit(pass, gate.pass(number)).unwrap()).collect();
    gate.wait_for_arrivals(2);
    let pids = pool.worker_pids();
    let _watchdog = watch("a drop");
    let dropping = thread::spawn(move || drop(pool));
    gate.open();
    dropping.join().unwrap();
    for (number, handle) in (0..).zip(handles) {
        assert!(handle.is_done(), "the drop returns when everything is done");
        assert_eq!(outcome(handle).unwrap(), number);
    }
    assert!(pids.iter().all(|pid| !processes::children().contains(pid)), "and reaped");
}

#[test]
fn an_unwinding_panic_drains_the_pool() {
    let mut handles = Vec::new();
    let _watchdog = watch("an unwinding");
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let pool = pool(2);
        handles.extend((0..100).map(|number| pool.submit(square, number).unwrap()));
        panic!("in the middle of it");
    }));
    assert!(unwound.is_err());
    for (number, handle) in (0..).zip(handles) {
        assert_eq!(outcome(handle).unwrap(), number * number);
    }
}

#[test]
fn the_last_owner_of_a_shared_pool_ends_it() {
    let pool = Arc::new(pool(1));
    let _watchdog = watch("the last owner");
    let threads: Vec<_> = (0..3)
        .map(|number| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.submit(square, number).unwrap())
        })
        .collect();
    let handles: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    drop(pool);
    assert!(handles.iter().all(brigade::Handle::is_done));
}

#[test]
fn workers_that_ignore_sigterm_are_killed_in_time() {
    let pool = deaf_pool(Duration::from_millis(100));
    let gate = Gate::new();
    let running: Vec<_> =
        (0..2).map(|number| pool.submit(pass, gate.pass(number)).unwrap()).collect();
    gate.wait_for_arrivals(2);
    let timeout = Duration::from_millis(200);
    let _watchdog = watch("the end of workers that ignore SIGTERM");
    let report = pool.shutdown_with(Shutdown::Terminate, timeout).unwrap();
    assert!(report.elapsed >= timeout && report.elapsed < timeout + SLACK, "{report:?}");
    assert_eq!((report.killed, report.workers_killed), (2, 2));
    for handle in running {
        assert_eq!(*outcome(handle).unwrap_err().kind(), TaskErrorKind::Killed);
    }
}

#[test]
fn a_worker_that_does_not_exit_is_killed_in_time() {
    let grace = Duration::from_millis(100);
    let pool = deaf_pool(grace);
    outcome(pool.submit(hangs_at_exit, ()).unwrap()).unwrap();
    let _watchdog = watch("the end of a worker that does not leave");
    let report = pool.shutdown().unwrap();
    assert!(report.elapsed >= 2 * grace && report.elapsed < SLACK, "{report:?}");
    assert_eq!((report.workers_stopped, report.workers_killed), (1, 1));
}

#[test]
fn a_task_that_stopped_its_worker_does_not_block_a_drain() {
    let pool = pool(2);
    let stopped = pool.submit(stops_itself, ()).unwrap();
    let others: Vec<_> = (0..20).map(|number| pool.submit(square, number).unwrap()).collect();
    let _watchdog = watch("a drain with a stopped worker");
    let report = pool.shutdown().unwrap();
    assert!(report.elapsed < SLACK, "{report:?}");
    assert_eq!(*outcome(stopped).unwrap_err().kind(), TaskErrorKind::Killed);
    for (number, handle) in (0..).zip(others) {
        assert_eq!(outcome(handle).unwrap(), number * number);
    }
}

#[test]
fn a_stopped_idle_worker_does_not_block_a_drain() {
    let pool = builder(2).stop_grace(Duration::from_millis(100)).build().unwrap();
    pool.warm_up().unwrap();
    let pids = pool.worker_pids();
    assert!(processes::hit_child(pids[0], processes::Signal::STOP));
    wait_until("the worker to stop", BOUND, || processes::is_stopped(pids[0]));
    let _watchdog = watch("a drain with a stopped idle worker");
    let report = pool.shutdown().unwrap();
    assert!(report.elapsed < SLACK, "{report:?}");
    assert!(pids.iter().all(|pid| !processes::children().contains(pid)));
}

#[test]
fn a_crash_during_a_drain_fails_only_its_own_task() {
    let pool = pool(2);
    let handles: Vec<_> = (0..40)
        .map(|number| {
            (
                number,
                pool.submit(
                    |number: u64| {
                        if number % 10 == 3 {
                            aborts(());
                        }
                    },
                    number,
                )
                .unwrap(),
            )
        })
        .collect();
    let _watchdog = watch("a drain with crashes");
    pool.shutdown().unwrap();
    for (number, handle) in handles {
        if number % 10 == 3 {
            worker_died(outcome(handle));
        } else {
            outcome(handle).unwrap();
        }
    }
}

#[test]
fn failures_of_every_kind_during_a_drain_are_reported() {
    let pool = pool(1);
    let gate = Gate::new();
    let first = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    let undecodable = pool.submit(takes_what_spoils_decoding, SpoilsDecoding(How::Fails)).unwrap();
    let panicking = pool.submit(panics_with_str, ()).unwrap();
    let unencodable = pool.submit(returns_what_spoils_encoding, How::Fails).unwrap();
    let dying = pool.submit(returns_what_spoils_encoding, How::Aborts).unwrap();
    let last = pool.submit(square, 3).unwrap();
    let _watchdog = watch("a drain with failures");
    thread::scope(|scope| {
        let drain = scope.spawn(|| pool.shutdown().unwrap());
        wait_until("the drain to begin", BOUND, || {
            matches!(pool.warm_up(), Err(PoolError::Closed))
        });
        gate.open();
        drain.join().unwrap();
    });
    outcome(first).unwrap();
    assert!(matches!(outcome(undecodable).unwrap_err().kind(), TaskErrorKind::Codec { .. }));
    assert!(outcome(panicking).unwrap_err().is_panic());
    assert!(matches!(outcome(unencodable).unwrap_err().kind(), TaskErrorKind::Codec { .. }));
    worker_died(outcome(dying));
    assert_eq!(outcome(last).unwrap(), 9);
}

#[test]
fn outcomes_that_came_before_survive_every_shutdown() {
    for mode in MODES {
        let pool = pool(2);
        let small: Vec<_> = (0..100).map(|number| pool.submit(square, number).unwrap()).collect();
        let large: Vec<_> = (0..4).map(|_| pool.submit(returns_bytes, 1 << 20).unwrap()).collect();
        wait_until("all results", BOUND, || {
            small.iter().all(brigade::Handle::is_done) && large.iter().all(brigade::Handle::is_done)
        });
        let stuck = (mode >= Shutdown::Terminate).then(|| pool.submit(hangs, ()).unwrap());
        let _watchdog = watch("a shutdown with results that nobody has taken");
        pool.shutdown_with(mode, BOUND).unwrap();
        for (number, handle) in (0..).zip(small) {
            assert_eq!(outcome(handle).unwrap(), number * number, "{mode:?}");
        }
        for handle in large {
            assert!(outcome(handle).unwrap() == returns_bytes(1 << 20), "{mode:?}");
        }
        if let Some(stuck) = stuck {
            outcome(stuck).unwrap_err();
        }
    }
}

#[test]
fn ten_thousand_endless_tasks_end_promptly() {
    for mode in [Shutdown::CancelPending, Shutdown::Terminate, Shutdown::Kill] {
        let pool = pool(2);
        let handles: Vec<_> = (0..10_000).map(|_| pool.submit(hangs, ()).unwrap()).collect();
        let _watchdog = watch("the end of endless tasks");
        let report = pool.shutdown_with(mode, Duration::from_millis(50)).unwrap();
        assert!(report.elapsed < SLACK, "{mode:?}: {report:?}");
        let kinds = handles.into_iter().map(|handle| outcome(handle).unwrap_err().kind().clone());
        let killed: Vec<_> = kinds.filter(|kind| *kind != TaskErrorKind::Cancelled).collect();
        assert!(killed.len() <= 2, "{mode:?}: {killed:?}");
        assert!(killed.iter().all(|kind| *kind == TaskErrorKind::Killed), "{mode:?}: {killed:?}");
        assert_eq!(report.cancelled + report.killed, 10_000, "{mode:?}: {report:?}");
    }
}

#[test]
fn a_shutdown_amid_large_payloads_loses_no_outcome() {
    for mode in MODES {
        for moment in [0, 3, 10] {
            let pool = pool(2);
            let handles: Vec<_> =
                (0..6_u8).map(|byte| pool.submit(echoes, vec![byte; 4 << 20]).unwrap()).collect();
            brigade_testkit::pause(Duration::from_millis(moment));
            let _watchdog = watch(&format!("{mode:?} amid large payloads"));
            pool.shutdown_with(mode, BOUND).unwrap();
            for (byte, handle) in (0..).zip(handles) {
                assert!(handle.is_done());
                match outcome(handle).map_err(|error| error.kind().clone()) {
                    Ok(bytes) => assert!(bytes == vec![byte; 4 << 20], "{mode:?}"),
                    Err(TaskErrorKind::Cancelled) => assert_ne!(mode, Shutdown::Drain),
                    Err(TaskErrorKind::Killed) => assert!(mode >= Shutdown::Terminate),
                    Err(other) => panic!("{mode:?}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn a_shutdown_does_not_wait_for_workers_that_are_still_starting() {
    let mut slow = Command::new("/bin/sh");
    slow.args(["-c", "sleep 60"]);
    let pool =
        builder(2).worker_command(&slow).start_timeout(Duration::from_secs(60)).build().unwrap();
    let handle = pool.submit(square, 3).unwrap();
    let _watchdog = watch("a shutdown during a start");
    let report = pool.shutdown_with(Shutdown::Kill, BOUND).unwrap();
    assert!(report.elapsed < SLACK, "{report:?}");
    assert!(outcome(handle).unwrap_err().is_cancelled());
}

#[test]
fn a_shutdown_at_a_random_moment_loses_no_outcome() {
    let seed = brigade_testkit::Random::seed_from("BRIGADE_TEST_SEED");
    let mut random = brigade_testkit::Random::new(seed);
    for round in 0..40 {
        let pool = pool(2);
        let handles: Vec<_> =
            (0..30).map(|_| pool.submit(sleeps, random.within(0..3)).unwrap()).collect();
        let (mode, moment) = (*random.choose(&MODES), random.below(Duration::from_millis(20)));
        let what = format!("{mode:?} after {moment:?} in round {round}; BRIGADE_TEST_SEED={seed}");
        let begin = Instant::now();
        let _watchdog = watch(&what);
        wait_until("the moment", BOUND, || begin.elapsed() >= moment);
        pool.shutdown_with(mode, BOUND).unwrap();
        for handle in handles {
            assert!(handle.is_done(), "{what}");
            match outcome(handle).map_err(|error| error.kind().clone()) {
                Ok(_) => {}
                Err(TaskErrorKind::Cancelled) => assert_ne!(mode, Shutdown::Drain, "{what}"),
                Err(TaskErrorKind::Killed) => assert!(mode >= Shutdown::Terminate, "{what}"),
                Err(other) => panic!("{what}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_quiesce_in_a_shutdown_says_that_the_pool_is_closed() {
    let _watchdog = watch("a quiesce during a shutdown");
    let pool = builder(1).stop_grace(10 * BOUND).build().unwrap();
    pool.warm_up().unwrap();
    let pid = pool.worker_pids()[0];
    // So that it does not exit before it is killed.
    assert!(processes::hit_child(pid, processes::Signal::STOP));
    wait_until("the worker to stop", BOUND, || processes::is_stopped(pid));
    thread::scope(|scope| {
        let quiesce = scope.spawn(|| pool.quiesce());
        let is_stopping = || pool.snapshot().workers[0].state == WorkerState::Stopping;
        wait_until("the worker to be asked to exit", BOUND, is_stopping);
        pool.shutdown_with(Shutdown::Kill, BOUND).unwrap();
        let interrupted = quiesce.join().unwrap();
        assert!(matches!(interrupted, Err(PoolError::Closed)), "{interrupted:?}");
    });
}
