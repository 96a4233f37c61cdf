//! Items of a map travel in chunks and fail one by one: whatever dies, each begins at most once and
//! has one outcome.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use brigade::TaskError;
use brigade_integration::pool;
use brigade_testkit::Gate;

/// Records that an item has begun, in a way that survives the death of the process.
fn note(journal: &Path, number: u64) {
    let mut file = OpenOptions::new().append(true).open(journal).expect("the journal");
    file.write_all(&number.to_le_bytes()).expect("a note");
}

/// Returns how often each item has begun.
fn begins(journal: &Path) -> HashMap<u64, usize> {
    let mut begins = HashMap::new();
    for number in fs::read(journal).expect("the journal").as_chunks().0 {
        *begins.entry(u64::from_le_bytes(*number)).or_default() += 1;
    }
    begins
}

fn journal() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal");
    File::create(&path).expect("the journal");
    (folder, path)
}

/// Records its item, then acts according to its number.
fn noted((number, journal): (u64, PathBuf)) -> u64 {
    note(&journal, number);
    match number % 1_000 {
        333 => std::process::abort(),
        444 => panic!("{number} is not wanted"),
        _ => number,
    }
}

fn check(number: u64, outcome: &Result<u64, TaskError>) {
    match outcome {
        Ok(result) => assert_eq!(*result, number),
        Err(error) if number % 1_000 == 333 => assert!(error.is_worker_death(), "{error}"),
        Err(error) => assert!(number % 1_000 == 444 && error.is_panic(), "{number}: {error}"),
    }
}

#[test]
fn a_crash_fails_one_item_and_each_item_begins_once() {
    for chunk in [None, Some(1), Some(7), Some(700)] {
        let (_folder, journal) = journal();
        let pool = pool(2);
        let inputs = (0..3_000).map(|number| (number, journal.clone()));
        let mut results = pool.map(noted, inputs);
        if let Some(chunk) = chunk {
            results = results.chunk(chunk);
        }
        let results: Vec<_> = results.collect();
        assert_eq!(results.len(), 3_000);
        for (number, outcome) in (0..).zip(&results) {
            check(number, outcome);
        }
        assert_eq!(results.iter().filter(|outcome| outcome.is_err()).count(), 6);
        let begins = begins(&journal);
        assert_eq!(begins.len(), 3_000);
        assert!(
            begins.values().all(|count| *count == 1),
            "an item ran twice, in chunks of {chunk:?}"
        );
    }
}

#[test]
fn each_failed_item_carries_its_own_number() {
    let (_folder, journal) = journal();
    let pool = pool(1);
    let inputs = (0..1_000).map(|number| (number, journal.clone()));
    let results = pool.map(noted, inputs).chunk(1_000);
    let tasks: Vec<_> = results
        .filter_map(Result::err)
        .map(|error| (error.task().expect("it became a task").get(), error.attempt()))
        .collect();
    let [(died, 1), (panicked, 1)] = tasks[..] else { panic!("{tasks:?}") };
    assert_eq!(panicked - died, 444 - 333);
}

#[test]
fn a_kill_at_any_moment_costs_at_most_the_running_item() {
    let (_folder, journal) = journal();
    let pool = pool(2);
    pool.warm_up().expect("workers");
    let inputs = (0..20_000_u64).map(|number| (number * 1_000, journal.clone()));
    let mut kills = 0;
    let mut outcomes = HashMap::new();
    for (count, outcome) in (0_u64..).zip(pool.map(noted, inputs)) {
        if count % 1_000 == 500
            && let Some(pid) = pool.worker_pids().first()
        {
            let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
            kills += usize::from(killed.expect("kill").success());
        }
        outcomes.insert(count * 1_000, outcome);
    }
    assert_eq!(outcomes.len(), 20_000);
    let begins = begins(&journal);
    let mut failed = 0;
    for (number, outcome) in &outcomes {
        let begins = begins.get(number).copied().unwrap_or(0);
        match outcome {
            Ok(result) => assert_eq!((result, begins), (number, 1)),
            Err(error) => {
                assert!(error.is_worker_death(), "{error}");
                assert!(begins <= 1, "{number} ran {begins} times");
                failed += 1;
            }
        }
    }
    assert!(failed <= kills, "{failed} items failed by {kills} kills");
}

#[test]
fn a_retried_item_runs_alone() {
    fn dies_twice((number, journal): (u64, PathBuf)) -> (u64, u32) {
        note(&journal, number);
        let attempt = brigade_integration::attempt();
        if number % 100 == 50 && attempt < 3 {
            std::process::abort();
        }
        (number, attempt)
    }
    let (_folder, journal) = journal();
    let pool = pool(2);
    let inputs = (0..300).map(|number| (number, journal.clone()));
    let results: Vec<_> =
        pool.map(dies_twice, inputs).chunk(60).retries(2).map(Result::unwrap).collect();
    for (number, result) in (0..).zip(results) {
        assert_eq!(result, (number, if number % 100 == 50 { 3 } else { 1 }));
    }
    let begins = begins(&journal);
    for number in 0..300 {
        assert_eq!(begins[&number], if number % 100 == 50 { 3 } else { 1 }, "{number}");
    }
}

#[test]
fn an_unencodable_input_fails_in_its_position() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Picky(#[serde(serialize_with = "below_ten")] u8);
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn below_ten<S: serde::Serializer>(number: &u8, serializer: S) -> Result<S::Ok, S::Error> {
        if *number == 10 {
            return Err(serde::ser::Error::custom("ten"));
        }
        serializer.serialize_u8(*number)
    }
    let pool = pool(2);
    for chunk in [1, 4, 100] {
        let results: Vec<_> =
            pool.map(|Picky(number)| number, (0..20).map(Picky)).chunk(chunk).collect();
        for (number, result) in (0..).zip(results) {
            match result {
                Ok(result) => assert_eq!(result, number),
                Err(error) => {
                    assert!(number == 10 && error.to_string().contains("Picky"), "{error}");
                }
            }
        }
    }
}

#[test]
fn a_panicking_input_loses_no_input_taken_before() {
    let pool = pool(2);
    let mut inputs = 0..100_u64;
    let inputs = std::iter::from_fn(move || {
        let number = inputs.next()?;
        assert!(number != 30, "no thirty");
        Some(number)
    });
    let mut results = pool.map(|number: u64| number, inputs).chunk(8);
    let mut numbers = Vec::new();
    loop {
        let next = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| results.next()));
        match next {
            Ok(Some(number)) => numbers.push(number.unwrap()),
            Ok(None) => break,
            Err(_) => {}
        }
    }
    assert_eq!(numbers, (0..100).filter(|number| *number != 30).collect::<Vec<_>>());
}

#[test]
fn a_closing_pool_yields_an_error_for_each_item_not_run() {
    let pool = pool(1);
    let gate = Gate::new();
    let inputs = (0..100).map(|number| gate.pass(number));
    let mut results = pool.map(brigade_testkit::pass, inputs).chunk(10);
    std::thread::scope(|scope| {
        let yielded = scope.spawn(move || results.by_ref().collect::<Vec<_>>());
        gate.wait_for_arrivals(1);
        let closing =
            scope.spawn(|| pool.shutdown_with(brigade::Shutdown::Kill, std::time::Duration::ZERO));
        closing.join().expect("no panic").expect("an end");
        let yielded = yielded.join().expect("no panic");
        assert_eq!(yielded.len(), 100);
        assert!(yielded.iter().all(Result::is_err));
    });
}
