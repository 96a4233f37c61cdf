//! The timeline of a pool, in Chrome's trace format.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use brigade::{PoolBuilder, PoolError};
use brigade_integration::{Log, builder, picky, square};
use brigade_testkit::faults::{aborts, sleeps};
use brigade_testkit::{BOUND, outcome, repetitions, wait_until};
use serde_json::Value;
use tempfile::TempDir;

fn traced(workers: usize) -> (TempDir, PathBuf, PoolBuilder) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    let builder = builder(workers).trace(&path);
    (folder, path, builder)
}

/// The events of a trace, checked against the rules of the format.
struct Trace(Vec<Value>);

impl Trace {
    #[track_caller]
    fn of(text: &str) -> Self {
        let trace = Self(serde_json::from_str(text).unwrap());
        let mut ends: HashMap<u64, f64> = HashMap::new();
        for event in &trace.0 {
            assert!(event["name"].is_string() && event["pid"] == 1, "{event}");
            let (time, row) = (event["ts"].as_f64(), event["tid"].as_u64());
            match event["ph"].as_str().unwrap() {
                "M" => assert!(event["args"]["name"].is_string(), "{event}"),
                "C" => assert!(time.is_some() && event["args"].is_object(), "{event}"),
                "i" => assert!(time.is_some() && row.is_some() && event["s"] == "t", "{event}"),
                "X" => {
                    let end = ends.entry(row.unwrap()).or_default();
                    let (start, duration) = (time.unwrap(), event["dur"].as_f64().unwrap());
                    assert!(start >= *end - 0.0005 && duration >= 0.0, "overlaps: {event}");
                    *end = start + duration;
                }
                other => panic!("unknown kind {other}: {event}"),
            }
            assert!(row != Some(0), "viewers take row 0 for an idle thread");
        }
        trace
    }

    /// Reads the file of a pool that was shut down. A shutdown waits for the thread that writes no
    /// longer than for user code.
    #[track_caller]
    fn read(path: &Path) -> Self {
        let read = || fs::read_to_string(path).unwrap();
        wait_until("the end of the trace", BOUND, || read().ends_with("]\n"));
        Self::of(&read())
    }

    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        self.0.iter().filter(move |event| event["name"] == name)
    }

    /// Returns the slices of attempts.
    fn attempts(&self) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(|event| event["ph"] == "X" && event["args"]["task"].is_u64())
    }

    /// Counts the tasks and items by the outcome of their attempts.
    fn outcomes(&self) -> BTreeMap<String, u64> {
        let mut outcomes = BTreeMap::new();
        for attempt in self.attempts() {
            let outcome = attempt["args"]["outcome"].as_str().unwrap().to_owned();
            *outcomes.entry(outcome).or_default() += attempt["args"]["items"].as_u64().unwrap_or(1);
        }
        outcomes
    }
}

#[test]
fn many_tasks_match_the_counters() {
    let tasks = repetitions(100_000);
    let (_folder, path, builder) = traced(2);
    let pool = builder.build().unwrap();
    let mut handles = Vec::new();
    for number in 0..tasks - 3 {
        handles.push(pool.submit(square, number).unwrap());
        if number % 1_000 == 0 {
            assert!(handles.drain(..).all(|handle| handle.wait().is_ok()));
            // Each slice has more than a hundred bytes. The writer must keep up even in a debug
            // build on a machine that does other things, because lost entries are lost.
            let written = || fs::metadata(&path).unwrap().len();
            let expected = 100 * number.saturating_sub(20_000);
            wait_until("the writer to keep up", BOUND, || written() >= expected);
        }
    }
    assert!(handles.drain(..).all(|handle| handle.wait().is_ok()));
    for _ in 0..3 {
        outcome(pool.submit(aborts, ()).unwrap()).unwrap_err();
    }
    // A process that is not ready yet has no slice.
    pool.warm_up().unwrap();
    let snapshot = pool.snapshot();
    pool.shutdown().unwrap();
    let trace = Trace::read(&path);
    assert_eq!(snapshot.finished, tasks);
    assert_eq!(trace.attempts().count() as u64, snapshot.attempts);
    let outcomes = trace.outcomes();
    assert_eq!(outcomes["succeeded"], snapshot.succeeded);
    assert_eq!(outcomes["interrupted"], snapshot.deaths);
    assert_eq!(trace.named("died").count() as u64, snapshot.deaths);
    assert_eq!(trace.named("restart").count() as u64, snapshot.restarts);
    assert_eq!(trace.named("lost").count(), 0);
    let rows = trace.named("thread_name").map(|row| row["args"]["name"].as_str().unwrap());
    assert_eq!(rows.collect::<std::collections::BTreeSet<_>>().len(), 2);
    let last = trace.named("queue").last().expect("a counter of the queue");
    assert_eq!(last["args"]["tasks"], 0);
}

#[test]
fn items_of_maps_are_counted_in_their_chunks() {
    let (_folder, path, builder) = traced(2);
    let pool = builder.build().unwrap();
    let failed = pool.map(picky, 0..10_000).retries(1).filter(Result::is_err).count();
    let snapshot = pool.snapshot();
    pool.shutdown().unwrap();
    let trace = Trace::read(&path);
    let outcomes = trace.outcomes();
    assert!(failed > 1_000 && outcomes["items_failed"] > 0, "{outcomes:?}");
    assert_eq!(outcomes.values().sum::<u64>(), snapshot.attempts, "{outcomes:?}");
}

#[test]
fn starts_labels_and_attempts_are_shown() {
    fn prepares((): ()) {
        sleeps(20);
    }
    let (_folder, path, builder) = traced(1);
    let pool = builder.initializer(prepares, ()).build().unwrap();
    let label = "\"quoted\"\n\u{7}".to_owned() + &"ü".repeat(1_000);
    outcome(pool.task(sleeps).label(label.clone()).submit(5).unwrap()).unwrap();
    outcome(pool.task(aborts).retries(1).submit(()).unwrap()).unwrap_err();
    pool.shutdown().unwrap();
    let trace = Trace::read(&path);
    assert_eq!(trace.named("start").count(), 1);
    let initialize = trace.named("initialize").next().unwrap();
    // The host's stamp between the two is behind the worker's begin.
    let start = trace.named("start").next().unwrap();
    let [begin, time, duration] = [&start["ts"], &initialize["ts"], &initialize["dur"]]
        .map(|number| number.as_f64().unwrap());
    assert!(duration > 0.0 && time + duration >= begin + 20_000.0, "{start} {initialize}");
    let labelled = trace.attempts().next().unwrap();
    assert!(label.starts_with(labelled["name"].as_str().unwrap()), "{labelled}");
    assert!(labelled["dur"].as_f64().unwrap() >= 5_000.0, "{labelled}");
    let interrupted = trace.attempts().filter(|it| it["args"]["outcome"] == "interrupted");
    let attempts: Vec<_> = interrupted.map(|it| it["args"]["attempt"].as_u64().unwrap()).collect();
    assert_eq!(attempts, [1, 2]);
}

#[test]
fn the_file_opens_while_the_pool_runs() {
    let (_folder, path, builder) = traced(1);
    let pool = builder.build().unwrap();
    outcome(pool.submit(square, 2).unwrap()).unwrap();
    // This is what is left if the host is killed now. The format allows the missing bracket.
    wait_until("the task to be in the file", BOUND, || {
        let text = fs::read_to_string(&path).unwrap();
        !text.is_empty() && Trace::of(&(text + "]")).attempts().count() == 1
    });
    pool.shutdown().unwrap();
    assert_eq!(Trace::read(&path).attempts().count(), 1);
}

#[test]
fn a_file_that_cannot_be_created_is_an_error() {
    let error = builder(1).trace("/nowhere/to/be/found").build().unwrap_err();
    let PoolError::Configuration { field, problem } = &error else { panic!("{error:?}") };
    assert_eq!(*field, "trace");
    assert!(problem.contains("/nowhere/to/be/found"), "{problem}");
}

#[test]
fn a_full_disk_ends_the_timeline_only() {
    let log = Log::get();
    let pool = builder(1).trace("/dev/full").build().unwrap();
    outcome(pool.submit(square, 2).unwrap()).unwrap();
    log.wait_for_line(&["WARN", "cannot write the timeline"]);
    assert_eq!(outcome(pool.submit(square, 3).unwrap()).unwrap(), 9);
    pool.shutdown().unwrap();
}
