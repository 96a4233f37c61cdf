//! Tests of whole snapshots, and one for other tests.

use brigade_testkit_core::example_snapshot;

use crate::PoolSnapshot;

/// Returns a snapshot with this number of workers.
pub(crate) fn example(workers: u32) -> PoolSnapshot {
    serde_json::from_value(example_snapshot(workers)).unwrap()
}

#[test]
fn the_numbers_are_consistent() {
    for workers in [0, 1, 2, 256] {
        let snapshot = example(workers);
        let failed = snapshot.failures.values().sum::<u64>();
        assert_eq!(snapshot.workers.len(), workers as usize);
        assert_eq!(snapshot.finished, snapshot.succeeded + failed);
        assert_eq!(snapshot.pending, snapshot.queued + snapshot.running);
        assert_eq!(snapshot.enqueued, snapshot.finished + snapshot.cancelled + snapshot.pending);
    }
}

#[test]
fn a_snapshot_survives_json() {
    let snapshot = example(3);
    let text = serde_json::to_string(&snapshot).unwrap();
    assert_eq!(serde_json::from_str::<PoolSnapshot>(&text).unwrap(), snapshot);
    assert!(text.contains(r#""failures":{"panicked":2,"worker_died":3,"deadline":1}"#), "{text}");
}
