//! Journals of pools with real processes.

use std::fs::File;

use brigade::{Pool, PoolError, journal};
use brigade_integration::builder;
use brigade_testkit::faults::{aborts, echoes, hangs};
use brigade_testkit::{BOUND, outcome, wait_until};

#[test]
fn a_replayed_journal_makes_the_same_decisions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let pool = builder(2).journal(&path).build().unwrap();
    let echoed: Vec<_> = (0..200).map(|_| pool.submit(echoes, vec![1]).unwrap()).collect();
    let crashed = pool.task(aborts).retries(1).submit(()).unwrap();
    let killed = pool.submit(hangs, ()).unwrap();
    for handle in echoed {
        outcome(handle).unwrap();
    }
    outcome(crashed).unwrap_err();
    wait_until("the task to begin", BOUND, || killed.running_for().is_some());
    assert!(killed.kill());
    outcome(killed).unwrap_err();
    assert_eq!(pool.map(|x: u64| x, 0..1_000).count(), 1_000);
    pool.shutdown().unwrap();
    drop(pool);

    let played = journal::replay(File::open(&path).unwrap()).unwrap();
    assert!(!played.torn);
    // At least the submission and the end of each task; it is accepted, sent and completed.
    assert!(played.events > 2 * 202 && played.actions > 3 * 202, "{played:?}");
}

#[test]
fn an_unwritable_journal_is_a_build_error() {
    let error = Pool::builder().journal("/no/such/folder/journal").build().unwrap_err();
    assert!(matches!(error, PoolError::Configuration { field: "journal", .. }), "{error}");
}
