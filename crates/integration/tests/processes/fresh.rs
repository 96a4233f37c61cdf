//! Pools with a fresh process for each task, whose workers run each task in a copy of themselves.

use std::collections::HashSet;
use std::io::Write;
use std::process::{Command, id};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use brigade::stream::Emit;
use brigade::{Exit, Function, Link, Pool, PoolBuilder, SharedBuf, Stdio, TaskError, worker};
use brigade_integration::{Captured, builder, square, worker_died};
use brigade_testkit::faults::{hangs_at_exit, stops_itself};
use brigade_testkit::processes::{self, Signal};
use brigade_testkit::{BOUND, Gate, LeakCheck, Pass, outcome, pass, wait_for, wait_until};
use brigade_testkit_sys::misdeeds;
use rustix::fs::Mode;

/// Makes a process start a thread before it becomes a worker.
const THREAD: &str = "BRIGADE_TEST_THREAD";

/// Makes a process print [`PRINTED`] before it becomes a worker, without the end of the line.
const PRINTS: &str = "BRIGADE_TEST_PRINTS";
const PRINTED: &str = "printed by main";

/// Does what these variables ask for.
pub(super) fn before_init() {
    if std::env::var_os(PRINTS).is_some() {
        std::io::stdout().write_all(PRINTED.as_bytes()).unwrap();
    }
    if std::env::var_os(THREAD).is_some() {
        std::thread::spawn(|| std::thread::park_timeout(BOUND));
    }
}

fn fresh(workers: usize) -> PoolBuilder {
    builder(workers).link(Link::Ring).fresh_process_per_task()
}

fn own_pid((): ()) -> u32 {
    id()
}

fn pids(pool: &Pool) -> Vec<u32> {
    let mut pids = pool.worker_pids();
    pids.sort_unstable();
    pids
}

/// Returns the pid of the only worker.
fn worker(pool: &Pool) -> u32 {
    wait_for("the worker", BOUND, || pool.worker_pids().first().copied())
}

fn error<By>(pool: &Pool, function: impl Function<i32, u32, By>, argument: i32) -> TaskError {
    outcome(pool.submit(function, argument).unwrap()).unwrap_err()
}

/// Uses up everything that a later task in the same process would notice.
fn uses_the_process(number: u32) -> (u32, u32, bool, usize, Option<u64>) {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
    let calls = CALLS.fetch_add(1, Ordering::Relaxed);
    std::thread::spawn(|| std::thread::park_timeout(BOUND));
    let is_set = rustix::process::umask(Mode::RWXO) == Mode::RWXO;
    std::env::set_current_dir("/").unwrap();
    let kept = std::mem::take(&mut *KEPT.lock().unwrap()).len();
    KEPT.lock().unwrap().push(vec![1; 1 << 20]);
    (number, calls, is_set, kept, worker::seed())
}

#[test]
fn a_task_finds_nothing_of_those_before_it() {
    let check = LeakCheck::new();
    let pool = fresh(2).build().unwrap();
    pool.warm_up().unwrap();
    let workers = pids(&pool);
    let mut seeds = HashSet::new();
    for (number, result) in pool.map(uses_the_process, 0..100).enumerate() {
        let (input, calls, is_set, kept, seed) = result.unwrap();
        assert_eq!((input as usize, calls, is_set, kept), (number, 0, false, 0));
        assert!(seeds.insert(seed), "two tasks have the same seed");
    }
    let tasks: HashSet<u32> = pool.map(own_pid, vec![(); 100]).map(Result::unwrap).collect();
    assert_eq!(tasks.len(), 100, "each task has a process");
    assert!(workers.iter().all(|worker| !tasks.contains(worker)));
    assert_eq!((pids(&pool), pool.worker_restarts()), (workers, 0), "workers are copied");
    pool.shutdown().unwrap();
    drop(pool);
    check.assert_none(BOUND);
}

#[test]
fn a_worker_ends_as_its_copy_does() {
    fn exits(code: i32) -> u32 {
        std::process::exit(code)
    }
    fn aborts(_: i32) -> u32 {
        std::process::abort()
    }
    fn is_killed(signal: i32) -> u32 {
        processes::hit(id(), Signal::from_named_raw(signal).unwrap());
        0
    }
    let check = LeakCheck::new();
    let pool = fresh(1).min_workers(1).build().unwrap();
    for code in [0, 1, 101, 231] {
        let worker = worker(&pool);
        assert_eq!(worker_died::<u32>(Err(error(&pool, exits, code))), (worker, Exit::Code(code)));
    }
    for signal in [2, 9, 15, 24] {
        let end = worker_died::<u32>(Err(error(&pool, is_killed, signal)));
        assert_eq!(end.1, Exit::Signal(signal));
    }
    let error = error(&pool, aborts, 0);
    let crash = error.crash().expect("a record");
    let stack = crash.stack().map(ToString::to_string).unwrap_or_default();
    assert!(stack.contains("aborts"), "{stack}");
    assert_eq!(outcome(pool.submit(square, 3).unwrap()).unwrap(), 9);
    drop(pool);
    check.assert_none(BOUND);
}

#[test]
fn a_panic_costs_its_task_only() {
    fn panics(_: i32) -> u32 {
        panic!("on purpose")
    }
    let pool = fresh(1).env("RUST_BACKTRACE", "1").build().unwrap();
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..20 {
        let begin = Instant::now();
        let error = error(&pool, panics, 0);
        assert!(error.is_panic(), "{error}");
        times.push(begin.elapsed());
    }
    assert_eq!(pool.worker_restarts(), 0);
    // What names are looked for in is read by the first process, and once for all others.
    let first = times[0];
    times.sort_unstable();
    assert!(times[10] < first, "{first:?}, then {times:?}");
}

#[test]
fn values_of_every_size_arrive_while_the_host_keeps_them() {
    fn bytes(length: usize) -> Vec<u8> {
        vec![u8::try_from(length % 251).unwrap(); length]
    }
    fn buffer(length: usize) -> SharedBuf {
        let mut buffer = worker::alloc(length).unwrap();
        buffer.fill(u8::try_from(length % 251).unwrap());
        buffer.freeze()
    }
    let check = LeakCheck::new();
    let pool = fresh(2).build().unwrap();
    let mut kept = Vec::new();
    for length in [1, 1 << 10, 20_000, 1 << 20, 5_000_001].into_iter().cycle().take(60) {
        let copied = pool.submit(bytes, length).unwrap();
        kept.push((length, outcome(pool.submit(buffer, length).unwrap()).unwrap()));
        assert_eq!(outcome(copied).unwrap(), bytes(length));
        if kept.len() == 20 {
            kept.truncate(5);
        }
    }
    for (length, buffer) in kept {
        assert!(buffer.iter().all(|byte| usize::from(*byte) == length % 251), "{length} bytes");
    }
    assert_eq!(pool.worker_restarts(), 0);
    drop(pool);
    check.assert_none(BOUND);
}

#[test]
fn buffers_that_a_task_keeps_are_returned_with_its_end() {
    fn keeps(buffer: SharedBuf) -> usize {
        static KEPT: OnceLock<SharedBuf> = OnceLock::new();
        KEPT.get_or_init(|| buffer).len()
    }
    let pool = fresh(1).buffer_budget(1 << 20).build().unwrap();
    for _ in 0..20 {
        // It waits until the one before has been returned.
        let mut buffer = pool.alloc(1 << 19).unwrap();
        buffer.fill(1);
        assert_eq!(outcome(pool.submit(keeps, buffer.freeze()).unwrap()).unwrap(), 1 << 19);
    }
}

#[test]
fn processes_that_a_task_leaves_behind_end() {
    fn leaves_a_child((): ()) -> u32 {
        Command::new("sleep").arg("1000").spawn().unwrap().id()
    }
    let pool = fresh(1).build().unwrap();
    for _ in 0..3 {
        let left = outcome(pool.submit(leaves_a_child, ()).unwrap()).unwrap();
        wait_until("the end of the child", BOUND, || !processes::is_alive(left));
    }
}

#[test]
fn tasks_that_take_too_long_are_killed_with_their_processes() {
    fn hangs(at: Pass) -> u64 {
        let _guard = worker::expires(Duration::from_millis(50));
        std::hint::black_box(pass(at))
    }
    let check = LeakCheck::new();
    let pool = fresh(1).build().unwrap();
    let gate = Gate::new();
    let limit = Duration::from_millis(50);
    let error = outcome(pool.task(pass).deadline(limit).submit(gate.pass(0)).unwrap()).unwrap_err();
    assert!(error.is_deadline(), "{error}");
    let error = outcome(pool.submit(hangs, gate.pass(0)).unwrap()).unwrap_err();
    assert!(error.is_deadline(), "{error}");
    let handle = pool.submit(hangs_for_long, gate.pass(0)).unwrap();
    let shows = |function: &str| handle.stack().is_some_and(|it| it.to_string().contains(function));
    wait_until("the stack of the copy", BOUND, || shows("hangs_for_long"));
    assert!(handle.kill());
    assert!(outcome(handle).is_err());
    assert_eq!(outcome(pool.submit(square, 3).unwrap()).unwrap(), 9);
    drop(pool);
    check.assert_none(BOUND);
}

fn hangs_for_long(at: Pass) -> u64 {
    std::hint::black_box(pass(at)) + 1
}

#[test]
fn a_copy_that_does_not_exit_costs_no_task() {
    let check = LeakCheck::new();
    let pool = fresh(1).stop_grace(Duration::from_millis(50)).build().unwrap();
    for _ in 0..3 {
        outcome(pool.submit(hangs_at_exit, ()).unwrap()).unwrap();
        assert_eq!(outcome(pool.submit(square, 3).unwrap()).unwrap(), 9);
    }
    drop(pool);
    check.assert_none(BOUND);
}

#[test]
fn a_copy_does_not_outlive_its_worker() {
    let pool = fresh(1).build().unwrap();
    let gate = Gate::new();
    let handle = pool.task(pass).retries(1).submit(gate.pass(7)).unwrap();
    gate.wait_for_arrivals(1);
    let worker = worker(&pool);
    let copies = processes::children_of(worker);
    assert_eq!(copies.len(), 1, "the copy that runs the task");
    processes::hit(worker, Signal::KILL);
    wait_until("the end of the copy", BOUND, || !processes::is_alive(copies[0]));
    gate.open();
    assert_eq!(outcome(handle).unwrap(), 7, "the task is tried again");
}

#[test]
fn a_worker_with_threads_is_replaced_after_each_task() {
    let check = LeakCheck::new();
    let pool = fresh(2).env(THREAD, "1").build().unwrap();
    let pids: HashSet<u32> = pool.map(own_pid, vec![(); 30]).map(Result::unwrap).collect();
    assert_eq!(pids.len(), 30);
    assert!(pool.worker_restarts() > 0, "its threads would be missing in a copy");
    drop(pool);
    check.assert_none(BOUND);
}

#[test]
fn tasks_that_fork_return_once() {
    fn forks((): ()) -> u32 {
        misdeeds::fork().unwrap();
        id()
    }
    let pool = fresh(1).build().unwrap();
    let pids: HashSet<u32> =
        (0..20).map(|_| outcome(pool.submit(forks, ()).unwrap()).unwrap()).collect();
    assert_eq!(pids.len(), 20);
}

#[test]
fn tasks_emit_items_from_their_copies() {
    fn counts(to: u32, emit: &mut Emit<'_, u32>) {
        for number in 0..to {
            emit.emit(number).unwrap();
        }
    }
    let pool = fresh(2).build().unwrap();
    let stream = pool.stream_flat(counts).start().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..5 {
                stream.put(300).unwrap();
            }
        });
        for number in (0..5).flat_map(|_| 0..300) {
            assert_eq!(stream.recv_timeout(BOUND).unwrap().result.unwrap(), number);
        }
    });
}

/// Spins for a while, and allocates 300 MiB.
fn is_greedy(millis: u64) -> usize {
    let end = Instant::now() + Duration::from_millis(millis);
    while Instant::now() < end {}
    let bytes = vec![1_u8; 300 << 20];
    std::hint::black_box(&bytes).len()
}

#[test]
fn limits_of_single_tasks_hold_for_them_alone() {
    let check = LeakCheck::new();
    let pool = fresh(1).build().unwrap();
    for _ in 0..2 {
        let limited = pool.task(is_greedy).cpu_time(Duration::from_millis(50));
        let error = outcome(limited.submit(20_000).unwrap()).unwrap_err();
        assert!(error.is_limit(), "{error}");
        assert_eq!(outcome(pool.submit(is_greedy, 0).unwrap()).unwrap(), 300 << 20);
        let limited = pool.task(is_greedy).memory(64 << 20).submit(0).unwrap();
        let next = pool.submit(is_greedy, 0).unwrap();
        let error = outcome(limited).unwrap_err();
        assert!(error.is_limit(), "{error}");
        assert_eq!(outcome(next).unwrap(), 300 << 20);
    }
    let limited = pool.task(own_pid).memory(1 << 30);
    let pids = [limited.submit(()).unwrap(), pool.submit(own_pid, ()).unwrap()].map(outcome);
    assert_ne!(pids[0].as_ref().unwrap(), pids[1].as_ref().unwrap());
    drop(pool);
    check.assert_none(BOUND);
}

#[test]
fn a_shutdown_ends_while_a_task_has_stopped_itself() {
    let check = LeakCheck::new();
    let pool = fresh(1).build().unwrap();
    let stopped = pool.submit(stops_itself, ()).unwrap();
    wait_until("a stopped copy", BOUND, || {
        let copies = pool.worker_pids().into_iter().flat_map(processes::children_of);
        copies.into_iter().any(processes::is_stopped)
    });
    let ending = std::thread::spawn(move || pool.shutdown());
    wait_until("the shutdown", BOUND, || ending.is_finished());
    assert!(outcome(stopped).is_err());
    check.assert_none(BOUND);
}

#[test]
fn a_finalizer_that_hangs_costs_no_task() {
    let pool = fresh(1)
        .stop_grace(Duration::from_millis(50))
        .finalizer(|| std::thread::park_timeout(2 * BOUND))
        .build()
        .unwrap();
    for number in 0..3 {
        assert_eq!(outcome(pool.submit(square, number).unwrap()).unwrap(), number * number);
    }
}

#[test]
fn signals_that_a_task_handles_do_not_end_its_worker() {
    fn ignores_them((): ()) -> u32 {
        misdeeds::ignore_termination();
        processes::hit_group(processes::group_of(id()).unwrap(), Signal::TERM);
        id()
    }
    let pool = fresh(1).build().unwrap();
    let pids = [(), ()].map(|()| outcome(pool.submit(ignores_them, ()).unwrap()).unwrap());
    assert_ne!(pids[0], pids[1]);
    assert_eq!(pool.worker_restarts(), 0);
}

#[test]
fn what_main_has_printed_is_printed_once() {
    let captured = Captured::get();
    let name = "fresh output";
    let builder = fresh(1).name(name).stdio(Stdio::Capture).env(PRINTS, "1");
    let pool = builder.build().unwrap();
    for _ in 0..5 {
        outcome(pool.submit(own_pid, ()).unwrap()).unwrap();
    }
    pool.shutdown().unwrap();
    drop(pool);
    let printed = || captured.stream(name, "stdout").concat();
    wait_until("the output", BOUND, || !printed().is_empty());
    assert_eq!(printed(), PRINTED);
}
