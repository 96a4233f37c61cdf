//! Workers that lie harm nobody else, and nothing that they send counts once something was
//! malformed.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use brigade::stream::Emit;
use brigade::{Limits, Link, Pool, PoolBuilder, Sandbox, Start, TaskError, TaskErrorKind};
use brigade_integration::{builder, worker_died};
use brigade_testkit::{BOUND, Watchdog, outcome, wait_until};
use tempfile::TempDir;

/// The worker program of a pool.
struct Liars {
    pool: Pool,
    folder: TempDir,
}

impl Liars {
    fn new(mode: &str, deaths: u32) -> Self {
        Self::with(mode, |pool| pool.restart_budget(deaths, Duration::from_secs(600)))
    }

    fn with(mode: &str, settings: impl FnOnce(PoolBuilder) -> PoolBuilder) -> Self {
        let folder = TempDir::new().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_liar"));
        command.arg(mode).env("BAD_WORKER_RUNS", folder.path().join("runs"));
        let pool = builder(1).link(Link::Ring).start(Start::Exec).worker_command(&command);
        let pool = settings(pool).build().unwrap();
        Self { pool, folder }
    }

    /// Returns the number of processes that were started.
    fn runs(&self) -> usize {
        self.pids().lines().count()
    }

    /// Returns `true` if the process with this index was started and is gone.
    fn is_dead(&self, index: u64) -> bool {
        let pids = self.pids();
        let pid = pids.lines().zip(0..).find(|(_, other)| *other == index);
        pid.is_some_and(|(pid, _)| !Path::new("/proc").join(pid).exists())
    }

    fn pids(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("runs")).unwrap_or_default()
    }
}

/// The function that an honest worker of this program appears to run.
fn same(number: u64) -> u64 {
    number
}

#[test]
fn items_not_begun_survive_any_number_of_worker_deaths() {
    let _watchdog = Watchdog::new("the end of a map", BOUND);
    let liars = Liars::new("5", 10);
    let results: Vec<_> = liars.pool.map(same, 0..20).chunk(20).map(Result::unwrap).collect();
    assert_eq!(results, (0..20).collect::<Vec<_>>());
    assert_eq!(liars.runs(), 6);
}

#[test]
fn workers_that_die_before_every_item_use_up_the_restart_budget() {
    let _watchdog = Watchdog::new("the end of a map", BOUND);
    let liars = Liars::new("1000", 4);
    for result in liars.pool.map(same, 0..20).chunk(20) {
        let error = result.unwrap_err();
        assert!(matches!(error.kind(), TaskErrorKind::PoolBroken { .. }), "{error}");
    }
    assert_eq!(liars.runs(), 5);
}

#[test]
fn a_chunk_finished_without_an_item_ends_its_worker() {
    let _watchdog = Watchdog::new("the end of a map", BOUND);
    let liars = Liars::new("hollow", 10);
    let dead: BTreeSet<u32> =
        (liars.pool.map(same, 0..4).chunk(4)).map(|result| worker_died(result).0).collect();
    assert_eq!(dead.len(), 4, "one worker for each item that it may have begun");
}

#[test]
fn nothing_counts_behind_a_malformed_message() {
    let _watchdog = Watchdog::new("the end of some tasks", BOUND);
    let liars = Liars::new("garbled", 10);
    let error = outcome(liars.pool.submit(same, 7).unwrap()).unwrap_err();
    assert!(error.is_worker_death(), "{error}");
    let text = error.to_string();
    assert!(text.contains("broke the protocol") && !text.contains("memory"), "{text}");
    let results: Vec<_> = liars.pool.map(same, 0..3).chunk(3).collect();
    assert!(results.iter().all(|result| result.as_ref().is_err_and(TaskError::is_worker_death)));
}

#[test]
fn nothing_counts_behind_a_message_out_of_order() {
    let _watchdog = Watchdog::new("the end of some tasks", BOUND);
    for mode in ["skips", "skips-forever", "releases-nothing"] {
        let liars = Liars::new(mode, 10);
        let error = outcome(liars.pool.submit(same, 7).unwrap()).unwrap_err();
        assert!(error.is_worker_death(), "{mode}: {error}");
    }
}

#[test]
fn a_worker_that_lies_about_large_memory_is_killed() {
    let _watchdog = Watchdog::new("the end of some tasks", BOUND);
    let length = |bytes: Vec<u8>| bytes.len();
    for (mode, size) in [
        ("offers", 1),
        ("offers-beyond", 1),
        ("offers-parts", 5 << 20),
        ("offers-large-parts", 5 << 20),
        ("offers-many-parts", 5 << 20),
        ("offers-no-parts", 5 << 20),
        ("wants", 1),
        ("wants-nowhere", 5 << 20),
        ("wants-again", 5 << 20),
    ] {
        let liars = Liars::new(mode, 10);
        let error = outcome(liars.pool.submit(length, vec![1; size]).unwrap()).unwrap_err();
        assert!(error.is_worker_death(), "{mode}: {error}");
        assert!(error.to_string().contains("broke the protocol"), "{mode}: {error}");
    }
}

#[test]
fn a_worker_that_emits_what_was_not_granted_is_killed() {
    let _watchdog = Watchdog::new("the end of a flat stream", BOUND);
    for (mode, delivered) in [("eager", 3), ("hasty", 0), ("barren", 0)] {
        let liars = Liars::new(mode, 10);
        let emit = |_: u64, _: &mut Emit<'_, u8>| {};
        let stream = liars.pool.stream_flat(emit).output(3).start().unwrap();
        for id in 0..3 {
            stream.put(id).unwrap();
            // Nobody takes an item before the worker is dead.
            wait_until("the worker's death", BOUND, || liars.is_dead(id));
            for index in 0..delivered {
                let item = stream.recv_timeout(BOUND).unwrap();
                assert_eq!((item.id, item.index, item.result.unwrap()), (id, index, 7), "{mode}");
            }
            let error = stream.recv_timeout(BOUND).unwrap().result.unwrap_err();
            assert!(error.to_string().contains("protocol"), "{mode}: {error}");
            worker_died(Err::<(), _>(error));
        }
        assert_eq!(stream.pending(), 0);
    }
}

#[test]
fn a_worker_in_a_sandbox_cannot_hide_a_task_from_its_limits() {
    // The program does not enter the sandbox: what counts is that it is not trusted.
    let limit = Duration::from_millis(200);
    let liars =
        Liars::with("secretive", |pool| pool.sandbox(Sandbox::no_network()).deadline(limit));
    let error = outcome(liars.pool.submit(same, 1).unwrap()).unwrap_err();
    assert!(error.is_deadline(), "{error}");
    let limits = Limits::new().cpu_time(limit);
    let liars = Liars::with("secretive", |pool| pool.sandbox(Sandbox::no_network()).limits(limits));
    let error = outcome(liars.pool.submit(same, 1).unwrap()).unwrap_err();
    assert!(error.is_limit(), "{error}");
}
