//! A worker that dies, at whatever step of a task and however many at once, costs only the tasks
//! that ran in it.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread;

use brigade::{Exit, Handle, Pool, TaskErrorKind};
use brigade_integration::{builder, pool, worker_died};
use brigade_testkit::faults::{aborts, echoes};
use brigade_testkit::processes::{Signal, hit, hit_child};
use brigade_testkit::{BOUND, Gate, Pass, Random, Watchdog, outcome, pass, pause, wait_until};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

fn square(number: u64) -> u64 {
    number * number
}

/// The way in which the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Ending {
    Exits(i32),
    Aborts,
    /// It sends itself this signal.
    Signal(i32),
}

/// The step of a task during which the worker ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Step {
    DecodingTheArgument,
    Running,
    DroppingTheArgument,
    EncodingTheResult,
    DroppingTheResult,
}

/// The ending, its step, and the process that must survive it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Fate {
    ending: Ending,
    step: Step,
    host: u32,
}

struct Argument(Fate);

#[derive(Debug)]
struct Answer(Fate);

fn is_doomed(argument: Argument) -> Answer {
    argument.0.at(Step::Running);
    Answer(argument.0)
}

impl Fate {
    fn at(&self, step: Step) {
        if step == self.step && std::process::id() != self.host {
            match self.ending {
                Ending::Exits(code) => std::process::exit(code),
                Ending::Aborts => std::process::abort(),
                Ending::Signal(number) => loop {
                    // Repeatedly, because the runtime's handler would swallow the first SIGSEGV
                    // that is not a fault.
                    hit(std::process::id(), Signal::from_named_raw(number).expect("a signal"));
                },
            }
        }
    }
}

impl Drop for Argument {
    fn drop(&mut self) {
        self.0.at(Step::DroppingTheArgument);
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.0.at(Step::DroppingTheResult);
    }
}

impl Serialize for Argument {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Argument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fate = Fate::deserialize(deserializer)?;
        fate.at(Step::DecodingTheArgument);
        Ok(Self(fate))
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.at(Step::EncodingTheResult);
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Answer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Fate::deserialize(deserializer).map(Self)
    }
}

#[test]
fn every_ending_at_every_step_costs_only_its_own_task() {
    let pool = pool(2);
    let endings = [
        (Ending::Exits(0), Exit::Code(0), "exit code 0"),
        (Ending::Exits(42), Exit::Code(42), "exit code 42"),
        (Ending::Aborts, Exit::Signal(6), "SIGABRT"),
        (Ending::Signal(11), Exit::Signal(11), "SIGSEGV"),
        (Ending::Signal(9), Exit::Signal(9), "SIGKILL"),
        (Ending::Signal(15), Exit::Signal(15), "SIGTERM"),
    ];
    let steps = [
        Step::DecodingTheArgument,
        Step::Running,
        Step::DroppingTheArgument,
        Step::EncodingTheResult,
        Step::DroppingTheResult,
    ];
    for (ending, exit, words) in endings {
        for step in steps {
            let what = format!("{ending:?} {step:?}");
            let _watchdog = Watchdog::new(&what, BOUND);
            let fate = Fate { ending, step, host: std::process::id() };
            let before: Vec<_> = (0..20).map(|n| pool.submit(square, n).unwrap()).collect();
            let doomed = pool.task(is_doomed).label(&*what).submit(Argument(fate)).unwrap();
            let after: Vec<_> = (20..40).map(|n| pool.submit(square, n).unwrap()).collect();
            for (number, handle) in (0..).zip(before.into_iter().chain(after)) {
                assert_eq!(outcome(handle).unwrap(), number * number, "{what}");
            }
            let error = outcome(doomed).unwrap_err();
            let text = error.to_string();
            let (pid, reported) = worker_died(Err::<(), _>(error));
            assert_eq!(reported, exit, "{what}");
            for part in [words, &pid.to_string(), &what] {
                assert!(text.contains(part), "{part:?} is missing in {text:?}");
            }
        }
    }
}

#[test]
fn one_crash_among_a_thousand_queued_tasks_fails_alone() {
    fn aborts_at_700(number: u64) -> u64 {
        if number == 700 {
            std::process::abort();
        }
        number
    }
    for workers in [1, 2] {
        let pool = pool(workers);
        let gate = Gate::new();
        let held: Vec<_> =
            (0..workers as u64).map(|n| pool.submit(pass, gate.pass(n)).unwrap()).collect();
        gate.wait_for_arrivals(workers);
        let queued: Vec<_> = (0..1_000).map(|n| pool.submit(aborts_at_700, n).unwrap()).collect();
        gate.open();
        let failed = (0..).zip(queued).filter_map(|(number, handle)| match outcome(handle) {
            Ok(answer) => {
                assert_eq!(answer, number);
                None
            }
            Err(error) => Some((number, error.is_worker_death())),
        });
        assert_eq!(failed.collect::<Vec<_>>(), [(700, true)]);
        assert!(held.into_iter().all(|handle| outcome(handle).is_ok()));
    }
}

fn aborts_behind_the_gate(gate: Pass) {
    pass(gate);
    std::process::abort();
}

#[test]
fn simultaneous_crashes_fail_only_their_own_tasks() {
    for workers in [1, 2, 5, 13] {
        let pool = pool(workers);
        let gate = Gate::new();
        let doomed: Vec<_> = (0..workers as u64)
            .map(|number| pool.submit(aborts_behind_the_gate, gate.pass(number)).unwrap())
            .collect();
        gate.wait_for_arrivals(workers);
        let queued: Vec<_> = (0..100).map(|n| pool.submit(square, n).unwrap()).collect();
        let pids: BTreeSet<u32> = pool.worker_pids().into_iter().collect();
        gate.open();
        let dead: BTreeSet<u32> =
            doomed.into_iter().map(|handle| worker_died(outcome(handle)).0).collect();
        assert_eq!(dead, pids, "{workers} workers");
        for (number, handle) in (0..).zip(queued) {
            assert_eq!(outcome(handle).unwrap(), number * number, "{workers} workers");
        }
    }
}

#[test]
fn simultaneous_kills_leave_the_queue_intact() {
    for workers in [1, 2, 5, 13] {
        let pool = pool(workers);
        let gate = Gate::new();
        let doomed: Vec<_> =
            (0..workers as u64).map(|n| pool.submit(pass, gate.pass(n)).unwrap()).collect();
        gate.wait_for_arrivals(workers);
        let queued: Vec<_> = (0..100).map(|n| pool.submit(square, n).unwrap()).collect();
        let pids = pool.worker_pids();
        let start = Barrier::new(pids.len());
        thread::scope(|scope| {
            for pid in &pids {
                scope.spawn(|| {
                    start.wait();
                    assert!(hit_child(*pid, Signal::KILL));
                });
            }
        });
        for handle in doomed {
            let (pid, exit) = worker_died(outcome(handle));
            assert!(pids.contains(&pid) && exit == Exit::Signal(9), "{pid} {exit:?}");
        }
        for (number, handle) in (0..).zip(queued) {
            assert_eq!(outcome(handle).unwrap(), number * number, "{workers} workers");
        }
    }
}

#[test]
fn a_crash_loses_none_of_the_arguments_in_flight() {
    const LARGE: usize = 12 << 20;
    let pool = pool(1);
    for round in 0..4_u8 {
        let _watchdog = Watchdog::new("large arguments behind a crash", 2 * BOUND);
        // Enough short tasks for the pool to expect short ones and to prefetch.
        assert_eq!(pool.map(square, 0..500).flatten().count(), 500);
        let gate = Gate::new();
        let doomed = pool.submit(aborts_behind_the_gate, gate.pass(0)).unwrap();
        gate.wait_for_arrivals(1);
        let behind: Vec<_> = (0..3)
            .map(|number| pool.submit(echoes, vec![10 * round + number; LARGE]).unwrap())
            .collect();
        gate.open();
        worker_died(outcome(doomed));
        for (number, handle) in (0..).zip(behind) {
            assert!(outcome(handle).unwrap() == vec![10 * round + number; LARGE]);
        }
    }
}

#[test]
fn a_crash_during_a_large_value_delivers_all_of_it_or_none() {
    /// Returns `length` bytes, while a thread waits `moment` microseconds and then kills the
    /// process.
    fn answers_and_dies((length, moment): (usize, u64)) -> Vec<u8> {
        thread::spawn(move || {
            brigade_testkit::faults::spins(moment);
            hit(std::process::id(), Signal::KILL);
        });
        vec![7; length]
    }
    let pool = pool(2);
    let seed = Random::seed_from("BRIGADE_TEST_SEED");
    let mut random = Random::new(seed);
    let (mut whole, mut lost) = (0, 0);
    for round in 0..150 {
        // Within one message, in several fragments, and in an arena.
        let length = *random.choose(&[1_000, 15_000, 200_000, 4 << 20]);
        let moment = random.within(0..1_000);
        let what = format!("round {round}: {length} bytes, {moment} µs; BRIGADE_TEST_SEED={seed}");
        let _watchdog = Watchdog::new(&what, BOUND);
        match outcome(pool.submit(answers_and_dies, (length, moment)).unwrap()) {
            Ok(bytes) => {
                assert!(bytes == vec![7; length], "{what}");
                whole += 1;
            }
            Err(error) => {
                assert_eq!(worker_died(Err::<(), _>(error)).1, Exit::Signal(9), "{what}");
                lost += 1;
            }
        }
        // The kill may come as late as in this task, which may therefore be retried.
        let next = pool.task(square).retries(3).submit(round).unwrap();
        assert_eq!(outcome(next).unwrap(), round * round, "{what}");
    }
    assert!(whole > 0 && lost > 0, "{whole} whole, {lost} lost; BRIGADE_TEST_SEED={seed}");
}

#[test]
fn a_crash_after_the_pool_is_dropped_still_has_an_outcome() {
    let pool = pool(2);
    let gate = Gate::new();
    let doomed: Vec<_> = (0..2)
        .map(|number| pool.submit(aborts_behind_the_gate, gate.pass(number)).unwrap())
        .collect();
    gate.wait_for_arrivals(2);
    let queued: Vec<_> = (0..10).map(|n| pool.submit(square, n).unwrap()).collect();
    let _watchdog = Watchdog::new("the drop of a pool whose workers crash", BOUND);
    let dropping = thread::spawn(move || drop(pool));
    gate.open();
    for handle in doomed {
        worker_died(outcome(handle));
    }
    for (number, handle) in (0..).zip(queued) {
        assert_eq!(outcome(handle).unwrap(), number * number);
    }
    dropping.join().unwrap();
}

#[test]
fn callbacks_of_crashed_tasks_can_submit_tasks() {
    fn next(pool: &Arc<Pool>, left: u64, done: Sender<u64>) {
        let again = Arc::clone(pool);
        pool.submit(aborts, ()).unwrap().on_done(move |outcome| {
            worker_died(outcome);
            match left {
                0 => again.submit(square, 9).unwrap().on_done(move |answer| {
                    done.send(answer.unwrap()).unwrap();
                }),
                _ => next(&again, left - 1, done),
            }
        });
    }
    let pool = Arc::new(pool(2));
    let (sender, receiver) = channel();
    for _ in 0..4 {
        next(&pool, 20, sender.clone());
    }
    drop(sender);
    let _watchdog = Watchdog::new("chains of crashes", BOUND);
    assert_eq!(receiver.iter().collect::<Vec<_>>(), [81; 4]);
}

#[test]
fn a_panic_after_a_task_harms_no_later_task() {
    fn leaves_a_panicking_thread(milliseconds: u64) {
        thread::spawn(move || {
            pause(std::time::Duration::from_millis(milliseconds));
            panic!("long after the task");
        });
    }
    let pool = pool(1);
    let pid = |(): ()| std::process::id();
    let before = outcome(pool.submit(pid, ()).unwrap()).unwrap();
    for milliseconds in 0..10 {
        outcome(pool.submit(leaves_a_panicking_thread, milliseconds).unwrap()).unwrap();
    }
    for number in 0..200 {
        assert_eq!(outcome(pool.submit(square, number).unwrap()).unwrap(), number * number);
    }
    assert_eq!(outcome(pool.submit(pid, ()).unwrap()).unwrap(), before);
}

#[test]
fn a_failed_replacement_strands_nobody_and_gives_a_reason() {
    for max_tasks in [None, Some(1)] {
        let folder = tempfile::TempDir::new().unwrap();
        let program = folder.path().join("worker");
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let mut settings = builder(1).worker_command(&Command::new(&program));
        if let Some(tasks) = max_tasks {
            settings = settings.max_tasks_per_worker(tasks);
        }
        let pool = settings.build().unwrap();
        let gate = Gate::new();
        let last = pool.submit(pass, gate.pass(1)).unwrap();
        gate.wait_for_arrivals(1);
        let doomed = max_tasks.is_none().then(|| pool.submit(aborts, ()).unwrap());
        let queued: Vec<Handle<u64>> = (0..20).map(|n| pool.submit(square, n).unwrap()).collect();
        fs::remove_file(&program).unwrap();
        let _watchdog = Watchdog::new("the outcomes of a pool without workers", BOUND);
        gate.open();
        assert_eq!(outcome(last).unwrap(), 1);
        if let Some(doomed) = doomed {
            worker_died(outcome(doomed));
        }
        for handle in queued {
            match outcome(handle).unwrap_err().kind() {
                TaskErrorKind::PoolBroken { reason } => {
                    assert!(reason.contains("No such file"), "{reason}");
                }
                other => panic!("{other:?}"),
            }
        }
        pool.shutdown().unwrap_err();
    }
}

#[test]
fn each_round_loses_only_its_poisoned_task() {
    fn poisoned((number, poison): (u64, u64)) -> u64 {
        if number == poison {
            std::process::abort();
        }
        number
    }
    let pool = pool(2);
    for round in 0..50 {
        let inputs = (0..20).map(|number| (number, round % 20));
        for (number, result) in (0..).zip(pool.map(poisoned, inputs)) {
            match result {
                Ok(answer) => assert!(answer == number && number != round % 20),
                Err(error) => assert!(error.is_worker_death() && number == round % 20, "{error}"),
            }
        }
    }
}

#[test]
fn a_grandchild_dies_with_a_killed_or_overdue_task() {
    /// Writes the pid of a process that it has started, and never ends.
    fn hangs_with_a_grandchild(file: std::path::PathBuf) {
        let grandchild = brigade_testkit::faults::leaves_a_grandchild(false);
        fs::write(file, grandchild.to_string()).unwrap();
        brigade_testkit::faults::hangs(());
    }
    let pool = pool(1);
    let folder = tempfile::TempDir::new().unwrap();
    for deadline in [false, true] {
        let file = folder.path().join(deadline.to_string());
        let mut task = pool.task(hangs_with_a_grandchild);
        if deadline {
            task = task.deadline(std::time::Duration::from_millis(300));
        }
        let handle = task.submit(file.clone()).unwrap();
        let grandchild: u32 = brigade_testkit::wait_for("the grandchild", BOUND, || {
            fs::read_to_string(&file).ok()?.parse().ok()
        });
        if !deadline {
            assert!(handle.kill());
        }
        outcome(handle).unwrap_err();
        wait_until("the grandchild's death", BOUND, || {
            !brigade_testkit::processes::is_alive(grandchild)
        });
    }
}
