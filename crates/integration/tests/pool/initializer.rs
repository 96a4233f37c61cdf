//! Initializers and finalizers of workers, and pools whose workers fail in them.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use brigade::{PoolBuilder, PoolError, Shutdown, SubmitErrorKind, TaskErrorKind, worker};
use brigade_integration::{Log, builder, worker_died};
use brigade_testkit::faults::{
    How, SpoilsDecoding, SpoilsEncoding, aborts, closes_all_descriptors, exits, hangs,
    kills_itself, sleeps,
};
use brigade_testkit::{BOUND, Gate, Watchdog, outcome, pass, processes, wait_until};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

/// Number of starts in a row that may fail.
const STARTS: usize = 5;

/// Neither `Send` nor serializable, like a connection or an interpreter.
struct Counter {
    name: String,
    tasks: Cell<u32>,
    log: RefCell<Vec<u32>>,
    _not_send: std::rc::Rc<()>,
}

fn counter(name: String) -> Counter {
    assert_eq!(worker::task(), None, "no task runs yet");
    assert!(worker::state::<Counter>().is_none(), "not made yet");
    let (tasks, log) = (Cell::new(0), RefCell::new(Vec::new()));
    Counter { name, tasks, log, _not_send: std::rc::Rc::new(()) }
}

fn count(number: u32) -> (String, u32, u32) {
    let counter = worker::state::<Counter>().expect("the pool has an initializer");
    counter.tasks.set(counter.tasks.get() + 1);
    counter.log.borrow_mut().push(number);
    (counter.name.clone(), counter.tasks.get(), std::process::id())
}

/// A file to which each run of a function appends a line.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Runs(PathBuf);

impl Runs {
    fn in_folder(folder: &TempDir) -> Self {
        Self(folder.path().join("runs"))
    }

    fn note(&self) {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0).unwrap();
        writeln!(file, "{}", std::process::id()).unwrap();
    }

    fn count(&self) -> usize {
        fs::read_to_string(&self.0).unwrap_or_default().lines().count()
    }
}

/// Checks the promises of a pool whose initializer never succeeds. Returns the reason that the pool
/// gives.
#[track_caller]
fn breaks(builder: PoolBuilder) -> String {
    let _watchdog = Watchdog::new("a pool whose initializer fails", BOUND);
    let pool = builder.build().unwrap();
    let handles: Vec<_> = (0..10).map_while(|number| pool.submit(sleeps, number).ok()).collect();
    assert!(!handles.is_empty());
    let mut reasons = BTreeSet::new();
    for handle in handles {
        let error = outcome(handle).unwrap_err();
        let TaskErrorKind::PoolBroken { reason } = error.kind() else { panic!("{error:?}") };
        reasons.insert(reason.clone());
    }
    let error = pool.submit(sleeps, 1).unwrap_err();
    let SubmitErrorKind::PoolBroken { reason } = error.kind() else { panic!("{error:?}") };
    reasons.insert(reason.clone());
    assert_eq!(reasons.len(), 1, "one reason in every outcome");
    assert!(matches!(pool.warm_up(), Err(PoolError::Broken { .. })));
    assert!(matches!(pool.shutdown(), Err(PoolError::Broken { .. })));
    let reason = reasons.pop_first().unwrap();
    assert!(reason.contains("5 starts in a row failed"), "{reason}");
    reason
}

#[track_caller]
fn assert_contains(reason: &str, parts: &[&str]) {
    for part in parts {
        assert!(reason.contains(part), "{part:?} is missing in {reason:?}");
    }
}

#[test]
fn an_initializer_runs_once_in_each_worker() {
    let pool = builder(2).initializer(counter, "table".to_owned()).build().unwrap();
    pool.warm_up().unwrap();
    let mut counts: Vec<(u32, u32)> = Vec::new();
    for number in 0..50 {
        let (name, tasks, pid) = outcome(pool.submit(count, number).unwrap()).unwrap();
        assert_eq!(name, "table");
        let before = counts.iter().filter(|(other, _)| *other == pid).count();
        assert_eq!(usize::try_from(tasks).unwrap(), before + 1);
        counts.push((pid, tasks));
    }
}

#[test]
fn a_replacement_runs_the_initializer_again() {
    let pool = builder(1).initializer(counter, "again".to_owned()).build().unwrap();
    assert_eq!(outcome(pool.submit(count, 1).unwrap()).unwrap().1, 1);
    assert_eq!(outcome(pool.submit(count, 2).unwrap()).unwrap().1, 2);
    worker_died(outcome(pool.submit(aborts, ()).unwrap()));
    assert_eq!(outcome(pool.submit(count, 3).unwrap()).unwrap().1, 1);
}

#[test]
fn state_is_visible_on_the_task_thread_and_by_its_type_only() {
    type Seen = (bool, bool, bool, bool);
    fn look((): ()) -> Seen {
        let elsewhere = thread::spawn(|| worker::state::<Vec<u8>>().is_some()).join().unwrap();
        let here = worker::state::<Vec<u8>>().is_some_and(|bytes| bytes == &[1, 2, 3]);
        (here, worker::state::<Vec<u16>>().is_some(), elsewhere, worker::state::<()>().is_some())
    }
    let pool = builder(1).initializer(|bytes: Vec<u8>| bytes, vec![1, 2, 3]).build().unwrap();
    let seen: Seen = outcome(pool.submit(look, ()).unwrap()).unwrap();
    assert_eq!(seen, (true, false, false, false));
    assert!(worker::state::<Vec<u8>>().is_none(), "this is the host");
    let without = builder(1).build().unwrap();
    let seen: Seen = outcome(without.submit(look, ()).unwrap()).unwrap();
    assert!(!seen.0);
}

#[test]
fn workers_share_one_copy_of_a_large_argument() {
    /// Returns the inode of the shared memory from which the argument is being read.
    fn origin(bytes: Vec<u8>) -> u64 {
        assert_eq!(bytes.len(), 64 << 20);
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.contains("memfd:brigade-initializer")).unwrap();
        assert!(line.contains(" r--p "), "nobody can write there: {line}");
        line.split_whitespace().nth(4).unwrap().parse().unwrap()
    }
    let pool = builder(2).initializer(origin, vec![7_u8; 64 << 20]).build().unwrap();
    let gate = Gate::new();
    let look = |pass: brigade_testkit::Pass| {
        (brigade_testkit::pass(pass), std::process::id(), worker::state::<u64>().copied())
    };
    let handles = [1, 2].map(|number| pool.submit(look, gate.pass(number)).unwrap());
    gate.wait_for_arrivals(2);
    gate.open();
    let [(_, pid, one), (_, other, two)] = handles.map(|handle| outcome(handle).unwrap());
    assert_ne!(pid, other);
    assert_eq!(one, two);
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    assert!(!maps.contains("brigade-initializer"), "a worker gives it back after its use");
}

#[test]
fn a_panic_breaks_the_pool_with_message_and_location() {
    let folder = TempDir::new().unwrap();
    let runs = Runs::in_folder(&folder);
    let builder = builder(2).initializer(
        |runs: Runs| {
            runs.note();
            writeln!(std::io::stderr(), "the license server said no").unwrap();
            panic!("no license for {}", 7)
        },
        runs.clone(),
    );
    let reason = breaks(builder);
    let parts = ["panicked", "no license for 7", "initializer.rs:", "the license server said no"];
    assert_contains(&reason, &parts);
    // Starts of both slots that fail at the same time count once.
    assert!((STARTS..=2 * STARTS).contains(&runs.count()), "{} runs", runs.count());
}

#[test]
fn each_start_that_fails_is_an_event() {
    let log = Log::get();
    breaks(builder(1).name("unlicensed").try_initializer(|()| Err::<(), _>("no license"), ()));
    log.wait_for_line(&["WARN", "worker did not start", "unlicensed", "no license"]);
}

#[test]
fn an_error_breaks_the_pool_even_with_an_empty_text() {
    let failing = |text: String| -> Result<(), String> { Err(text) };
    let reason = breaks(builder(2).try_initializer(failing, "no such model: résumé".to_owned()));
    assert_contains(&reason, &["initializer failed: no such model: résumé"]);
    assert_contains(&breaks(builder(1).try_initializer(failing, String::new())), &["failed: "]);
}

#[test]
fn a_fallible_initializer_returns_the_state() {
    let parse = |text: String| text.parse::<u16>();
    let pool = builder(1).try_initializer(parse, "4711".to_owned()).build().unwrap();
    let look = |(): ()| worker::state::<u16>().copied();
    assert_eq!(outcome(pool.submit(look, ()).unwrap()).unwrap(), Some(4711));
    let reason = breaks(builder(1).try_initializer(parse, "many".to_owned()));
    assert_contains(&reason, &["invalid digit found in string"]);
}

#[test]
fn an_exit_breaks_the_pool_with_the_exit_status() {
    assert_contains(
        &breaks(builder(2).initializer(exits, 3)),
        &["in its initializer", "exit code 3"],
    );
    assert_contains(
        &breaks(builder(2).initializer(exits, 0)),
        &["in its initializer", "exit code 0"],
    );
    assert_contains(
        &breaks(builder(2).initializer(aborts, ())),
        &["in its initializer", "SIGABRT"],
    );
    assert_contains(&breaks(builder(1).initializer(kills_itself, ())), &["SIGKILL"]);
}

#[test]
fn closing_all_descriptors_breaks_the_pool_at_once() {
    let reason = breaks(builder(2).initializer(closes_all_descriptors, ()));
    assert_contains(&reason, &["in its initializer", "exit code 225", "control socket"]);
}

#[test]
fn a_pool_goes_on_with_the_workers_that_started() {
    let folder = TempDir::new().unwrap();
    let runs = Runs::in_folder(&folder);
    let second_fails = |runs: Runs| {
        if worker::slot() == Some(1) {
            runs.note();
            return Err("only one license");
        }
        Ok(())
    };
    let pool = builder(2).try_initializer(second_fails, runs.clone()).build().unwrap();
    let error = pool.warm_up().unwrap_err();
    assert!(matches!(error, PoolError::Start { .. }), "{error:?}");
    assert_contains(&error.to_string(), &["only one license"]);
    // The start of the first worker may have begun a new row, and another try may be under way by
    // now.
    let ran = runs.count();
    assert!((STARTS..3 * STARTS).contains(&ran), "{ran} runs");
    for number in 0..20 {
        assert_eq!(outcome(pool.submit(sleeps, number % 2).unwrap()).unwrap(), number % 2);
    }
    pool.shutdown().unwrap();
}

#[test]
fn a_slow_initializer_breaks_the_pool_and_names_the_limit() {
    let limit = Duration::from_millis(200);
    let reason = breaks(builder(2).initializer(hangs, ()).initializer_timeout(limit));
    assert_contains(&reason, &["initializer did not return", "200ms", "initializer_timeout"]);
}

#[test]
fn the_initializer_does_not_use_up_the_start_timeout() {
    let start = Duration::from_secs(4);
    let slow = |(): ()| brigade_testkit::pause(Duration::from_secs(5));
    let pool = builder(1).start_timeout(start).initializer(slow, ()).build().unwrap();
    assert_eq!(outcome(pool.submit(sleeps, 1).unwrap()).unwrap(), 1);
}

#[test]
fn an_initializer_may_succeed_at_the_third_try() {
    let folder = TempDir::new().unwrap();
    let runs = Runs::in_folder(&folder);
    let third = |runs: Runs| {
        runs.note();
        if runs.count() < 3 { Err(format!("try {}", runs.count())) } else { Ok(()) }
    };
    let pool = builder(1).try_initializer(third, runs.clone()).build().unwrap();
    let handles: Vec<_> = (0..20).map(|number| pool.submit(sleeps, number).unwrap()).collect();
    for (number, handle) in (0..).zip(handles) {
        assert_eq!(outcome(handle).unwrap(), number);
    }
    assert_eq!(runs.count(), 3);
}

#[test]
fn an_unencodable_argument_is_an_error_that_names_it() {
    let field = |builder: PoolBuilder| match builder.build() {
        Err(PoolError::Configuration { field, problem }) => (field, problem),
        other => panic!("no error of a setting but {other:?}"),
    };
    let (name, problem) =
        field(builder(1).initializer(|_: SpoilsEncoding| (), SpoilsEncoding(How::Fails)));
    assert_eq!(name, "initializer");
    assert!(problem.contains("SpoilsEncoding"), "{problem}");
    let too_large = builder(1).message_limit(100).initializer(|_: Vec<u8>| (), vec![0; 101]);
    let (name, problem) = field(too_large);
    assert_eq!(name, "initializer");
    assert!(problem.contains("message_limit") && problem.contains("SharedBuf"), "{problem}");
    let (name, _) = field(builder(1).initializer_timeout(Duration::ZERO));
    assert_eq!(name, "initializer_timeout");
}

#[test]
fn an_undecodable_argument_breaks_the_pool_and_names_its_type() {
    let reason = breaks(builder(1).initializer(|_: SpoilsDecoding| (), SpoilsDecoding(How::Fails)));
    assert_contains(&reason, &["argument of its initializer", "SpoilsDecoding"]);
}

#[test]
fn a_shutdown_does_not_wait_for_an_initializer() {
    let folder = TempDir::new().unwrap();
    let runs = Runs::in_folder(&folder);
    let hang = |runs: Runs| {
        runs.note();
        hangs(());
    };
    let pool = builder(1).initializer(hang, runs.clone()).build().unwrap();
    let handle = pool.submit(sleeps, 1).unwrap();
    wait_until("the initializer to run", BOUND, || runs.count() == 1);
    let pid: u32 = fs::read_to_string(&runs.0).unwrap().trim().parse().unwrap();
    let _watchdog = Watchdog::new("a shutdown during an initializer", BOUND);
    pool.shutdown_with(Shutdown::CancelPending, Duration::ZERO).unwrap();
    assert!(outcome(handle).unwrap_err().is_cancelled());
    assert!(!processes::is_alive(pid));
}

#[test]
fn a_child_of_the_initializer_inherits_no_descriptor() {
    fn inherited((): ()) -> Vec<String> {
        let listing = std::process::Command::new("ls").args(["-l", "/proc/self/fd"]).output();
        String::from_utf8(listing.unwrap().stdout)
            .unwrap()
            .lines()
            .filter(|line| ["memfd", "socket", "eventfd"].iter().any(|kind| line.contains(kind)))
            .map(str::to_owned)
            .collect()
    }
    let pool = builder(1).initializer(inherited, ()).build().unwrap();
    let look = |(): ()| worker::state::<Vec<String>>().cloned();
    assert_eq!(outcome(pool.submit(look, ()).unwrap()).unwrap(), Some(Vec::new()));
}

/// A finalizer that writes the state to a file.
fn farewell() {
    let path = worker::state::<PathBuf>().expect("the pool has an initializer");
    // Exiting takes a while; the end of the work must not be taken for the end of the process.
    brigade_testkit::pause(Duration::from_millis(50));
    fs::write(path, std::process::id().to_string()).unwrap();
}

fn farewells(path: PathBuf) -> PathBuf {
    path.join(std::process::id().to_string())
}

fn names(folder: &Path) -> BTreeSet<u32> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries.map(|entry| entry.file_name().to_str().unwrap().parse().unwrap()).collect()
}

#[test]
fn a_finalizer_runs_in_each_worker_that_is_asked_to_exit() {
    let folder = TempDir::new().unwrap();
    let pool = builder(3)
        .initializer(farewells, folder.path().to_owned())
        .finalizer(farewell)
        .build()
        .unwrap();
    pool.warm_up().unwrap();
    let pids: BTreeSet<u32> = pool.worker_pids().into_iter().collect();
    assert!(names(folder.path()).is_empty());
    pool.shutdown().unwrap();
    assert_eq!(names(folder.path()), pids);
}

#[test]
fn a_finalizer_does_not_run_in_a_worker_that_dies() {
    let folder = TempDir::new().unwrap();
    let pool = builder(1)
        .initializer(farewells, folder.path().to_owned())
        .finalizer(farewell)
        .build()
        .unwrap();
    let (dead, _) = worker_died(outcome(pool.submit(aborts, ()).unwrap()));
    assert_eq!(outcome(pool.submit(sleeps, 1).unwrap()).unwrap(), 1);
    pool.shutdown().unwrap();
    let ran = names(folder.path());
    assert!(ran.len() == 1 && !ran.contains(&dead), "{ran:?}, dead {dead}");
}

#[test]
fn a_panicking_or_hanging_finalizer_delays_no_shutdown() {
    let _watchdog = Watchdog::new("pools whose finalizers fail", BOUND);
    let grace = Duration::from_millis(100);
    let panics = builder(1).finalizer(|| panic!("in the finalizer")).build().unwrap();
    let hanging = builder(1).stop_grace(grace).finalizer(|| hangs(())).build().unwrap();
    let exiting = builder(1).finalizer(|| exits(9)).build().unwrap();
    // SIGTERM ends the one that hangs. On a busy machine that may take longer than the grace.
    for (pool, may_be_killed) in [(panics, 0), (hanging, 1), (exiting, 0)] {
        assert_eq!(outcome(pool.submit(sleeps, 1).unwrap()).unwrap(), 1);
        let report = pool.shutdown().unwrap();
        assert_eq!(report.workers_stopped, 1);
        assert!(report.workers_killed <= may_be_killed, "{report:?}");
    }
}

#[test]
fn a_task_running_during_a_drain_still_has_its_state() {
    let pool = builder(1).initializer(counter, "late".to_owned()).build().unwrap();
    let gate = Gate::new();
    let first = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    let second = pool.submit(count, 2).unwrap();
    gate.open();
    pool.shutdown().unwrap();
    assert_eq!(outcome(first).unwrap(), 1);
    assert_eq!(outcome(second).unwrap().0, "late");
}
