//! Checks of snapshots.

use brigade::metrics::{PoolSnapshot, WorkerState};

/// Checks that the numbers of a snapshot fit together.
///
/// # Panics
/// Panics if they do not.
#[track_caller]
pub fn assert_consistent(snapshot: &PoolSnapshot) {
    if let Err(problem) = check(snapshot) {
        panic!("{problem}:\n{snapshot}");
    }
}

/// Returns an error that names the numbers that do not fit together.
pub(crate) fn check(snapshot: &PoolSnapshot) -> Result<(), String> {
    let PoolSnapshot { enqueued, finished, cancelled, pending, queued, running, .. } = *snapshot;
    let failed: u64 = snapshot.failures.values().sum();
    let busy = snapshot.workers.iter().filter(|worker| worker.running.is_some()).count();
    for (holds, rule) in [
        (enqueued == finished + cancelled + pending, "enqueued = finished + cancelled + pending"),
        (pending == queued + running, "pending = queued + running"),
        (finished == snapshot.succeeded + failed, "finished = succeeded + failed"),
        (snapshot.max_queue_depth >= queued, "max_queue_depth >= queued"),
        (busy as u64 <= running, "each busy worker runs a task"),
    ] {
        if !holds {
            return Err(format!("`{rule}` does not hold"));
        }
    }
    for worker in &snapshot.workers {
        if worker.running.is_some() && worker.state == WorkerState::Vacant {
            return Err(format!("a worker without a process runs a task: {worker:?}"));
        }
        let shares = worker.shares;
        let sum = shares.start + shares.initialize + shares.wait + shares.run + shares.exit;
        if sum != 0.0 && (sum - 1.0).abs() > 1e-6 {
            return Err(format!("the shares add up to {sum}: {worker:?}"));
        }
    }
    Ok(())
}
