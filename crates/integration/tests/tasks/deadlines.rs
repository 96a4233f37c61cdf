//! Tasks that run or wait for too long are ended on time, and nothing else is.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::time::{Duration, Instant};

use brigade::{TaskError, TaskErrorKind, worker};
use brigade_integration::{attempt, builder, pool};
use brigade_testkit::faults::{echoes, hangs, sleeps, stops_itself};
use brigade_testkit::{BOUND, Gate, Pass, Watchdog, outcome, pass, pause, processes, wait_until};
use serde::{Deserialize, Serialize, Serializer};

/// Longer than a worker that is ready to run waits for a core.
const LIMIT: Duration = Duration::from_millis(500);

fn deadline_exceeded<R: std::fmt::Debug>(outcome: Result<R, TaskError>) -> (Duration, Duration) {
    let error = outcome.expect_err("the task should have been ended");
    match error.kind() {
        TaskErrorKind::DeadlineExceeded { limit, elapsed } => (*limit, *elapsed),
        _ => panic!("the task should have been ended by its deadline: {error:?}"),
    }
}

#[test]
fn a_deadline_is_never_early_and_replaces_the_worker() {
    let pool = pool(1);
    pool.warm_up().unwrap();
    let before = pool.worker_pids();
    let begin = Instant::now();
    let late = pool.task(hangs).label("stuck").deadline(LIMIT).submit(()).unwrap();
    let after = pool.submit(echoes, vec![1]).unwrap();
    let error = outcome(late).unwrap_err();
    assert!(begin.elapsed() >= LIMIT);
    assert!(error.is_deadline() && !error.is_queue_deadline());
    let text = error.to_string();
    assert!(text.contains("stuck") && text.contains("exceeded its deadline of 500ms"), "{text}");
    let (limit, elapsed) = deadline_exceeded::<()>(Err(error));
    assert_eq!(limit, LIMIT);
    assert!(elapsed >= LIMIT);
    assert_eq!(outcome(after).unwrap(), [1]);
    assert_ne!(pool.worker_pids(), before);
}

#[test]
fn time_in_the_queue_does_not_count_as_running_time() {
    let pool = pool(1);
    let gate = Gate::new();
    let first = pool.submit(pass, gate.pass(1)).unwrap();
    let second = pool.task(echoes).deadline(LIMIT).submit(vec![2]).unwrap();
    gate.wait_for_arrivals(1);
    pause(2 * LIMIT);
    gate.open();
    outcome(first).unwrap();
    assert_eq!(outcome(second).unwrap(), [2]);
}

#[test]
fn a_task_past_its_queue_deadline_never_begins() {
    let pool = pool(1);
    let gate = Gate::new();
    let first = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    let second = pool.task(pass).queue_deadline(LIMIT).submit(gate.pass(2)).unwrap();
    let error = outcome(second).unwrap_err();
    assert!(error.is_queue_deadline(), "{error:?}");
    assert!(error.to_string().contains("queue deadline of 500ms"), "{error}");
    let (limit, elapsed) = deadline_exceeded::<()>(Err(error));
    assert_eq!(limit, LIMIT);
    assert!(elapsed >= LIMIT);
    gate.open();
    outcome(first).unwrap();
    assert_eq!(gate.arrivals(), 1);
}

#[test]
fn a_tasks_deadline_overrides_that_of_the_pool() {
    let pool = builder(2).deadline(LIMIT).build().unwrap();
    deadline_exceeded(outcome(pool.submit(hangs, ()).unwrap()));
    let longer = pool.task(sleeps).deadline(BOUND).submit(1_000).unwrap();
    outcome(longer).unwrap();
    let results: Vec<_> = pool
        .map(sleep_or_hang, [0, 0, 1, 0, 0])
        .map(|outcome| outcome.map_err(|error| error.is_deadline()))
        .collect();
    assert_eq!(results, [Ok(0), Ok(0), Err(true), Ok(0), Ok(0)]);
}

fn sleep_or_hang(what: u8) -> u8 {
    if what == 1 {
        hangs(());
    }
    what
}

#[test]
fn one_hanging_item_among_many_fails_alone() {
    let pool = pool(2);
    let inputs = (0..20_000_u32).map(|number| u8::from(number == 7_777));
    let failed: Vec<usize> = pool
        .map(sleep_or_hang, inputs)
        .deadline(LIMIT)
        .enumerate()
        .filter_map(|(index, outcome)| outcome.err().map(|error| (index, error)))
        .map(|(index, error)| {
            assert!(error.is_deadline(), "{error:?}");
            index
        })
        .collect();
    assert_eq!(failed, [7_777]);
}

fn works_until_cancelled((): ()) -> bool {
    while !worker::cancelled() {
        assert!(worker::remaining().is_some());
        std::hint::spin_loop();
    }
    worker::remaining() == Some(Duration::ZERO)
}

#[test]
fn a_task_that_heeds_its_soft_deadline_keeps_its_value() {
    let pool = pool(1);
    pool.warm_up().unwrap();
    let before = pool.worker_pids();
    let handle = pool.task(works_until_cancelled).soft_deadline(LIMIT).submit(()).unwrap();
    assert!(outcome(handle).unwrap());
    assert_eq!(pool.worker_pids(), before);
    let free = |(): ()| (worker::cancelled(), worker::remaining());
    assert_eq!(outcome(pool.submit(free, ()).unwrap()).unwrap(), (false, None));
}

#[test]
fn a_task_that_ignores_its_soft_deadline_is_killed() {
    let pool = builder(1).stop_grace(LIMIT).build().unwrap();
    let begin = Instant::now();
    let handle = pool.task(hangs).soft_deadline(LIMIT).submit(()).unwrap();
    deadline_exceeded(outcome(handle));
    assert!(begin.elapsed() >= 2 * LIMIT);
}

/// Opens and closes sections, nested and one after the other, and then stays in one if `stays`.
fn works_in_sections(stays: bool) -> u32 {
    let mut closed = 0;
    for _ in 0..1_000 {
        let _outer = worker::expires(BOUND);
        let inner = worker::expires(LIMIT);
        drop(inner);
        closed += 1;
    }
    let caught = std::panic::catch_unwind(|| {
        let _guard = worker::expires(LIMIT);
        panic!("out of the section");
    });
    assert!(caught.is_err());
    let _outer = worker::expires(LIMIT);
    let _inner = worker::expires(BOUND);
    if stays {
        hangs(());
    }
    std::mem::forget(worker::expires(LIMIT));
    closed
}

#[test]
fn an_overdue_section_ends_only_its_own_task() {
    let pool = pool(1);
    for _ in 0..3 {
        assert_eq!(outcome(pool.submit(works_in_sections, false).unwrap()).unwrap(), 1_000);
    }
    // The forgotten section ended with its task.
    outcome(pool.submit(sleeps, 1_000).unwrap()).unwrap();
    let begin = Instant::now();
    let stuck = pool.submit(works_in_sections, true).unwrap();
    let (limit, elapsed) = deadline_exceeded(outcome(stuck));
    assert_eq!(limit, LIMIT);
    assert!(elapsed >= LIMIT && begin.elapsed() >= LIMIT);
    assert_eq!(outcome(pool.submit(echoes, vec![9]).unwrap()).unwrap(), [9]);
}

#[test]
fn a_section_outside_a_worker_does_nothing() {
    drop(worker::expires(Duration::ZERO));
}

#[test]
fn a_stopped_task_is_killed_at_its_deadline() {
    let pool = pool(1);
    let handle = pool.task(stops_itself).deadline(LIMIT).submit(()).unwrap();
    deadline_exceeded(outcome(handle));
}

fn hangs_at_first((): ()) -> u32 {
    if attempt() == 1 {
        hangs(());
    }
    attempt()
}

#[test]
fn a_task_with_retries_runs_again_after_its_deadline() {
    let pool = pool(1);
    let handle = pool.task(hangs_at_first).deadline(LIMIT).retries(1).submit(()).unwrap();
    assert_eq!(outcome(handle).unwrap(), 2);
}

#[test]
fn kill_ends_a_running_task_and_harms_no_other() {
    let pool = pool(1);
    // The pool expects short tasks and prefetches.
    for result in pool.map(echoes, std::iter::repeat_n(vec![], 500)) {
        result.unwrap();
    }
    let stuck = pool.task(hangs).retries(3).submit(()).unwrap();
    let behind: Vec<_> = (0..100).map(|_| pool.submit(echoes, vec![3]).unwrap()).collect();
    wait_until("the task to begin", BOUND, || stuck.state() == brigade::TaskState::Running);
    assert!(stuck.kill());
    assert!(matches!(outcome(stuck).unwrap_err().kind(), TaskErrorKind::Killed));
    for handle in behind {
        assert_eq!(outcome(handle).unwrap(), [3]);
    }
}

/// Holds memory that the system takes long to reclaim.
fn waits_with_much_memory(gate: Pass) -> usize {
    let memory = vec![1_u8; 512 << 20];
    pass(gate);
    std::hint::black_box(memory).len()
}

fn process((): ()) -> u32 {
    std::process::id()
}

#[test]
fn the_next_task_does_not_wait_for_a_killed_process_to_go() {
    // To be ahead once is enough; a pool that waits for the end of the process never is.
    let ahead = (0..10).any(|_| {
        let (pool, gate) = (pool(1), Gate::new());
        let killed = outcome(pool.submit(process, ()).unwrap()).unwrap();
        let stuck = pool.submit(waits_with_much_memory, gate.pass(1)).unwrap();
        gate.wait_for_arrivals(1);
        assert!(stuck.kill());
        assert_ne!(outcome(pool.submit(process, ()).unwrap()).unwrap(), killed);
        let ahead = processes::is_alive(killed);
        assert!(matches!(outcome(stuck).unwrap_err().kind(), TaskErrorKind::Killed));
        pool.shutdown().unwrap();
        assert!(!processes::is_alive(killed), "a pool that has ended leaves nobody");
        ahead
    });
    assert!(ahead, "the replacement always came after the end of the killed process");
}

#[test]
fn kill_cancels_a_queued_task_and_ignores_a_finished_one() {
    let pool = pool(1);
    let gate = Gate::new();
    let first = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    let second = pool.submit(pass, gate.pass(2)).unwrap();
    assert!(second.kill());
    assert!(outcome(second).unwrap_err().is_cancelled());
    gate.open();
    wait_until("the task to end", BOUND, || first.is_done());
    assert!(!first.kill());
    assert_eq!(outcome(first).unwrap(), 1);
}

#[test]
fn tasks_that_end_at_their_deadline_have_one_outcome_each() {
    let pool = pool(2);
    let handles: Vec<_> = (0..400_u64)
        .map(|number| {
            let micros = 4_000 + number * 7_919 % 2_000;
            let task = pool.task(|(number, micros): (u64, u64)| {
                pause(Duration::from_micros(micros));
                number
            });
            task.deadline(Duration::from_millis(5)).submit((number, micros)).unwrap()
        })
        .collect();
    let mut late = 0;
    for (number, handle) in (0..).zip(handles) {
        match outcome(handle) {
            Ok(answer) => assert_eq!(answer, number),
            Err(error) => {
                late += 1;
                assert!(error.is_deadline(), "{error:?}");
            }
        }
    }
    assert!(late > 0, "some must have been late");
    assert_eq!(outcome(pool.submit(echoes, vec![4]).unwrap()).unwrap(), [4]);
}

/// Starts a shell in its own session that ignores SIGTERM and starts another program; records both
/// pids and hangs.
fn hangs_with_offspring(journal: std::path::PathBuf) {
    let script = "trap '' TERM; sleep 300 & echo $$ $! > \"$1.new\"; mv \"$1.new\" \"$1\"; wait";
    let mut command = std::process::Command::new("setsid");
    command.args(["sh", "-c", script, "sh"]).arg(journal);
    let mut child = command.spawn().expect("`setsid` is everywhere");
    let _ = child.wait();
    hangs(());
}

#[test]
fn children_of_an_overdue_task_die_in_any_session() {
    let pool = pool(1);
    let folder = tempfile::TempDir::new().unwrap();
    let journal = folder.path().join("journal");
    let late = pool.submit(hangs_with_offspring, journal.clone()).unwrap();
    wait_until("the offspring", BOUND, || journal.exists());
    assert!(late.kill());
    assert!(matches!(outcome(late).unwrap_err().kind(), TaskErrorKind::Killed));
    let numbers = std::fs::read_to_string(journal).unwrap();
    let pids: Vec<u32> = numbers.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(pids.len(), 2);
    wait_until("the offspring to be gone", BOUND, || {
        !pids.iter().any(|pid| processes::is_alive(*pid))
    });
}

/// Item 0 leaves a section open; the others together take longer than that section may.
fn forgets_a_section(number: u32) -> u32 {
    if number == 0 {
        std::mem::forget(worker::expires(LIMIT));
    } else {
        pause(LIMIT / 2);
    }
    number
}

#[test]
fn an_open_section_ends_with_its_item() {
    let pool = pool(1);
    let results: Vec<_> = pool.map(forgets_a_section, 0..6).chunk(6).map(Result::unwrap).collect();
    assert_eq!(results, [0, 1, 2, 3, 4, 5]);
    assert_eq!(pool.worker_restarts(), 0);
}

#[test]
fn a_section_of_a_later_item_still_applies() {
    let pool = pool(1);
    let stays_too_long = |number: u32| {
        let section = worker::expires(if number < 3 { BOUND } else { LIMIT });
        if number == 3 {
            hangs(());
        }
        drop(section);
        number
    };
    let results: Vec<_> = pool.map(stays_too_long, 0..5).chunk(5).collect();
    for (number, result) in (0..).zip(results) {
        match number {
            3 => assert_eq!(deadline_exceeded(result).0, LIMIT),
            _ => assert_eq!(result.unwrap(), number),
        }
    }
}

#[test]
fn a_panic_is_not_late_because_of_its_backtrace() {
    fn panics((): ()) {
        panic!("at once");
    }
    let _watchdog = Watchdog::new("panics that are not late", BOUND);
    let mut in_time = 0;
    while in_time < 3 {
        let pool = builder(1).env("RUST_BACKTRACE", "1").build().unwrap();
        let task = pool.task(panics).deadline(Duration::from_millis(20)).submit(()).unwrap();
        let error = outcome(task).unwrap_err();
        // A busy machine may make some tasks late, and a backtrace that counts all of them.
        if let TaskErrorKind::Panicked { backtrace, .. } = error.kind() {
            assert!(backtrace.contains("panics"), "{backtrace}");
            in_time += 1;
        }
    }
}

/// A value that takes long to encode, in milliseconds.
#[derive(Debug, Deserialize)]
struct Slow(u64);

impl Serialize for Slow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        pause(Duration::from_millis(self.0));
        serializer.serialize_newtype_struct("Slow", &self.0)
    }
}

#[test]
fn a_value_is_not_late_because_of_its_encoding() {
    let pool = pool(1);
    let task = pool.task(Slow).deadline(Duration::from_millis(200));
    let Slow(millis) = outcome(task.submit(500).unwrap()).unwrap();
    assert_eq!(millis, 500);
    // One that never ends is.
    deadline_exceeded(outcome(task.submit(u64::MAX).unwrap()));
}
