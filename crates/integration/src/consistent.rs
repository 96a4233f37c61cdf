//! Checks of snapshots.

use brigade::metrics::{PoolSnapshot, WorkerState};

/// Checks that the numbers of a snapshot fit together.
///
/// # Panics
/// Panics if they do not.
#[track_caller]
pub fn assert_consistent(snapshot: &PoolSnapshot) {
    let PoolSnapshot { enqueued, finished, cancelled, pending, queued, running, .. } = *snapshot;
    assert_eq!(enqueued, finished + cancelled + pending, "{snapshot}");
    assert_eq!(pending, queued + running, "{snapshot}");
    let failed: u64 = snapshot.failures.values().sum();
    assert_eq!(finished, snapshot.succeeded + failed, "{snapshot}");
    assert!(snapshot.max_queue_depth >= queued, "{snapshot}");
    let busy = snapshot.workers.iter().filter(|worker| worker.running.is_some());
    assert!(busy.count() as u64 <= running, "{snapshot}");
    for worker in &snapshot.workers {
        assert!(worker.running.is_none() || worker.state != WorkerState::Vacant, "{worker:?}");
        let shares = worker.shares;
        let sum = shares.start + shares.initialize + shares.wait + shares.run + shares.exit;
        assert!(sum == 0.0 || (sum - 1.0).abs() < 1e-6, "{worker:?}");
    }
}
