//! Checks workers that are threads of the host: what holds there as with processes, and what says
//! that it does not.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use brigade::stream::Emit;
use brigade::{Pool, PoolError, Resource, SharedBuf, TaskErrorKind, worker};
use brigade_testkit::{BOUND, wait_until};

static CALLS: AtomicUsize = AtomicUsize::new(0);

fn pool() -> Pool {
    Pool::builder().in_process().workers(2).build().unwrap()
}

fn hangs((): ()) {
    loop {
        std::thread::park();
    }
}

#[test]
fn a_task_runs_in_the_process_of_its_host() {
    let pool = pool();
    let pid = pool.submit(|()| std::process::id(), ()).unwrap().wait().unwrap();
    assert_eq!(pid, std::process::id());
    pool.submit(|()| CALLS.fetch_add(1, Ordering::Relaxed), ()).unwrap().wait().unwrap();
    assert_eq!(CALLS.load(Ordering::Relaxed), 1);
    assert!(pool.worker_pids().is_empty());
}

#[test]
fn maps_and_streams_yield_all_items_in_order() {
    let pool = pool();
    let squares: Vec<u64> = pool.map(|x: u64| x * x, 0..10_000).collect::<Result<_, _>>().unwrap();
    assert!(squares.iter().zip(0..).all(|(square, x)| *square == x * x));
    let stream = pool.stream(|x: u64| x + 1).ordered(true).start().unwrap();
    let items: Vec<u64> = std::thread::scope(|scope| {
        scope.spawn(|| {
            for x in 0..100 {
                stream.put(x).unwrap();
            }
            stream.finish();
        });
        stream.iter().map(|item| item.result.unwrap()).collect()
    });
    assert_eq!(items, (1..=100).collect::<Vec<u64>>());
}

#[test]
fn large_values_travel_both_ways() {
    let bytes = vec![7_u8; 20 << 20];
    let back = pool().submit(|bytes: Vec<u8>| bytes, bytes.clone()).unwrap().wait().unwrap();
    assert!(back == bytes);
}

#[test]
fn a_panic_is_an_error_of_its_task_alone() {
    let pool = pool();
    let panicking = |x: u64| if x == 3 { panic!("no threes") } else { x };
    let results: Vec<_> = pool.map(panicking, 0..6).chunk(2).collect();
    for (x, result) in (0..).zip(results) {
        match result {
            Ok(value) => assert_eq!(value, x),
            Err(error) => {
                assert_eq!(x, 3);
                let text = error.to_string();
                assert!(text.contains("no threes") && text.contains("in_process.rs"), "{text}");
            }
        }
    }
}

#[test]
fn each_thread_is_a_worker_with_its_own_context() {
    static MEETING: Barrier = Barrier::new(2);
    let pool = pool();
    let look = |()| {
        MEETING.wait();
        (worker::slot(), worker::task().is_some(), worker::depth())
    };
    let mut slots: Vec<_> =
        pool.map(look, [(); 20]).chunk(1).map(|result| result.unwrap()).collect();
    assert!(slots.iter().all(|(_, has_task, depth)| *has_task && *depth == Some(1)));
    slots.sort_unstable();
    slots.dedup();
    assert_eq!(slots.iter().map(|it| it.0).collect::<Vec<_>>(), [Some(0), Some(1)]);
    assert_eq!((worker::slot(), worker::task()), (None, None));
}

#[test]
fn each_worker_has_its_own_state_and_preloaded_value() {
    let pool = Pool::builder()
        .in_process()
        .workers(2)
        .preload(|x: u64| x + 1, 1)
        .initializer(|x: u32| x * 2, 21)
        .build()
        .unwrap();
    let look = |()| (worker::state::<u32>().copied(), worker::preloaded::<u64>().copied());
    for result in pool.map(look, [(); 8]).chunk(1) {
        assert_eq!(result.unwrap(), (Some(42), Some(2)));
    }
}

#[test]
fn a_failed_initializer_breaks_the_pool_with_its_reason() {
    let pool = Pool::builder()
        .in_process()
        .workers(1)
        .restart_budget(0, Duration::from_secs(1))
        .try_initializer(|()| Err::<(), _>("no table"), ())
        .build()
        .unwrap();
    let error = pool.submit(|()| (), ()).unwrap().wait().unwrap_err().to_string();
    assert!(error.contains("its initializer failed: no table"), "{error}");
}

#[test]
fn a_task_past_its_deadline_is_given_up_and_its_slot_goes_on() {
    let pool = Pool::builder().in_process().workers(1).build().unwrap();
    let handle = pool.task(hangs).deadline(Duration::from_millis(50)).submit(()).unwrap();
    let error = handle.wait().unwrap_err();
    assert!(matches!(error.kind(), TaskErrorKind::DeadlineExceeded { .. }), "{error}");
    let mut next = pool.submit(|()| worker::generation(), ()).unwrap();
    assert_eq!(next.wait_timeout(BOUND).unwrap().unwrap(), Some(2));
}

#[test]
fn a_soft_deadline_reaches_the_task() {
    let pool = pool();
    let patient = |()| {
        let start = Instant::now();
        while !worker::cancelled() && start.elapsed() < BOUND {
            std::thread::yield_now();
        }
        worker::cancelled()
    };
    let handle = pool.task(patient).soft_deadline(Duration::from_millis(20)).submit(()).unwrap();
    assert!(handle.wait().unwrap());
}

#[test]
fn a_killed_task_is_retried_no_more_and_its_slot_goes_on() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let pool = Pool::builder().in_process().workers(1).build().unwrap();
    let hang = |()| {
        RUNS.fetch_add(1, Ordering::Relaxed);
        hangs(());
    };
    let handle = pool.submit(hang, ()).unwrap();
    wait_until("the task runs", BOUND, || RUNS.load(Ordering::Relaxed) == 1);
    handle.kill();
    assert!(handle.wait().is_err());
    assert_eq!(pool.submit(|x: u8| x, 9).unwrap().wait().unwrap(), 9);
    assert_eq!(RUNS.load(Ordering::Relaxed), 1);
}

/// The pieces and the slot of a task.
type Had = (Option<Vec<u32>>, Option<u32>);

fn has() -> Had {
    (worker::indices("gpu"), worker::slot())
}

#[test]
fn a_killed_task_goes_on_with_what_the_next_one_has() {
    static FIRST_RUNS: AtomicBool = AtomicBool::new(false);
    static SECOND_RUNS: AtomicBool = AtomicBool::new(false);
    static HAD_BY_FIRST: Mutex<Option<Had>> = Mutex::new(None);
    let pool = Pool::builder().in_process().workers(1).resource("gpu", Resource::Indexed(1));
    let pool = pool.build().unwrap();
    let first = |()| {
        FIRST_RUNS.store(true, Ordering::Relaxed);
        wait_until("the second task runs", BOUND, || SECOND_RUNS.load(Ordering::Relaxed));
        *HAD_BY_FIRST.lock().unwrap() = Some(has());
    };
    let second = |()| {
        SECOND_RUNS.store(true, Ordering::Relaxed);
        wait_until("the first task looks", BOUND, || HAD_BY_FIRST.lock().unwrap().is_some());
        has()
    };
    let first = pool.task(first).needs("gpu", 1).submit(()).unwrap();
    wait_until("the first task runs", BOUND, || FIRST_RUNS.load(Ordering::Relaxed));
    first.kill();
    assert!(first.wait().is_err());
    let had = pool.task(second).needs("gpu", 1).submit(()).unwrap().wait().unwrap();
    assert_eq!(had, (Some(vec![0]), Some(0)));
    assert_eq!(HAD_BY_FIRST.lock().unwrap().as_ref(), Some(&had));
}

#[test]
fn a_shutdown_runs_the_finalizer_and_ends_the_threads() {
    static FINALIZED: AtomicUsize = AtomicUsize::new(0);
    let pool = Pool::builder()
        .in_process()
        .workers(2)
        .finalizer(|| {
            FINALIZED.fetch_add(1, Ordering::Relaxed);
        })
        .build()
        .unwrap();
    pool.warm_up().unwrap();
    let sum: u64 = pool.map(|x: u64| x, 0..100).map(|x| x.unwrap()).sum();
    assert_eq!(sum, 4950);
    drop(pool);
    assert!(FINALIZED.load(Ordering::Relaxed) >= 1);
}

#[test]
fn workers_are_replaced_as_processes_are() {
    let pool = Pool::builder().in_process().workers(1).max_tasks_per_worker(1).build().unwrap();
    let look = |()| worker::generation().unwrap();
    let generations: Vec<u32> =
        (0..3).map(|_| pool.submit(look, ()).unwrap().wait().unwrap()).collect();
    assert_eq!(generations, [1, 2, 3]);
}

#[test]
fn settings_of_other_programs_are_errors_of_build() {
    let command = std::process::Command::new("true");
    let error = Pool::builder().in_process().worker_command(&command).build().unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, PoolError::Configuration { field: "worker_command", .. }), "{text}");
    assert!(text.contains("in_process"), "{text}");
}

#[test]
fn threads_read_one_table_of_the_initializer() {
    fn read(position: usize) -> Option<u8> {
        worker::state::<SharedBuf>()?.get(position).copied()
    }
    let table = SharedBuf::from((0..=255).collect::<Vec<u8>>());
    let builder = Pool::builder().in_process().workers(2);
    let pool = builder.initializer(|table: SharedBuf| table, table).build().unwrap();
    for answer in pool.broadcast(read, 77).unwrap() {
        assert_eq!(answer.wait().unwrap(), Some(77));
    }
}

#[test]
fn an_attempt_that_was_given_up_stops_waiting_to_emit() {
    static ENDED: AtomicUsize = AtomicUsize::new(0);
    static BEGUN: AtomicUsize = AtomicUsize::new(0);
    fn emits((): (), emit: &mut Emit<'_, u64>) {
        BEGUN.fetch_add(1, Ordering::Relaxed);
        while emit.emit(0).is_ok() {}
        ENDED.fetch_add(1, Ordering::Relaxed);
    }
    let pool = pool();
    let stream = pool.stream_flat(emits).output(1).deadline(Duration::from_millis(50)).retries(1);
    let stream = stream.start().unwrap();
    stream.put(()).unwrap();
    wait_until("the second attempt", BOUND, || BEGUN.load(Ordering::Relaxed) == 2);
    drop((stream, pool));
    wait_until("the end of both", BOUND, || ENDED.load(Ordering::Relaxed) == 2);
}
