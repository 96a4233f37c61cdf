//! A snapshot for tests and for the documentation.

use std::time::Duration;

use crate::{
    Distribution, Failure, FailureKind, HistoryPoint, LabelSnapshot, PoolSnapshot, RunningTask,
    Shares, SlowTask, WorkerSnapshot, WorkerState,
};

impl PoolSnapshot {
    /// Returns a snapshot of a pool that never existed, with this number of workers, whose numbers
    /// are consistent. Labels and error texts contain characters that exporters must escape.
    #[doc(hidden)]
    pub fn example(workers: u32) -> Self {
        let workers: Vec<_> = (0..workers).map(worker).collect();
        let running = workers.iter().filter(|worker| worker.running.is_some()).count() as u64;
        let deaths = workers.iter().map(|worker| worker.restarts).sum();
        Self {
            pool: 1,
            name: "thumbnails".to_owned(),
            age: Duration::from_secs(754),
            enqueued: 12_345 + running,
            finished: 12_000,
            cancelled: 45,
            pending: 300 + running,
            queued: 300,
            running,
            max_queue_depth: 4096,
            succeeded: 11_994,
            failures: [
                (FailureKind::Panicked, 2),
                (FailureKind::WorkerDied, 3),
                (FailureKind::Deadline, 1),
            ]
            .into(),
            recent_failures: (0..6).map(failure).collect(),
            attempts: 12_003,
            bytes_in: 3_456_789_012,
            bytes_out: 98_765_432,
            queue_time: times(12_000, 40),
            start_time: times(2 + deaths, 2_400),
            run_time: times(12_000, 900),
            delivery_time: times(12_000, 3),
            labels: vec![
                label("decode", 9_000, 2),
                label("<img src=x> \"filter\" \\ line\nbreak", 2_900, 4),
                label(LabelSnapshot::OTHER, 100, 0),
            ],
            slowest: (0..5).map(slow).collect(),
            restarts: deaths,
            executed: 2,
            forked: deaths,
            fork_server: Some(39_999),
            deaths,
            history: (0..600).rev().filter(|ago| ago % 97 > 5).map(second).collect(),
            workers,
            ..Self::default()
        }
    }
}

fn worker(slot: u32) -> WorkerSnapshot {
    let state = match slot % 8 {
        3 => WorkerState::Idle,
        5 => WorkerState::Starting,
        6 => WorkerState::Stopping,
        7 => WorkerState::Vacant,
        _ => WorkerState::Busy,
    };
    let running = (state == WorkerState::Busy).then(|| RunningTask {
        task: 12_046 + u64::from(slot),
        attempt: 1 + slot % 3 / 2,
        label: "decode".to_owned(),
        items: 1,
        elapsed: Duration::from_millis(u64::from(slot * 37 % 1_000)),
    });
    WorkerSnapshot {
        slot,
        generation: 1 + slot % 4,
        pid: (state != WorkerState::Vacant).then_some(40_000 + slot),
        state,
        running,
        tasks: u64::from(6_000 / (slot + 1)),
        failures: u64::from(slot % 3),
        restarts: u64::from(slot % 4),
        bytes_in: 1_728_394_506 / u64::from(slot + 1),
        bytes_out: 49_382_716 / u64::from(slot + 1),
        shares: Shares { start: 0.02, initialize: 0.03, wait: 0.15, run: 0.79, exit: 0.01 },
        slowest: (0..5).map(slow).collect(),
    }
}

/// Returns times whose median has this number of microseconds.
fn times(count: u64, median: u64) -> Distribution {
    let micros = |factor: u64| Duration::from_nanos(factor * median * 10);
    Distribution {
        count,
        min: micros(20),
        mean: micros(130),
        p50: micros(100),
        p90: micros(210),
        p95: micros(340),
        p99: micros(900),
        max: micros(5_200),
    }
}

fn label(label: &str, finished: u64, failed: u64) -> LabelSnapshot {
    let (run_time, queue_time) = (times(finished, 900), times(finished, 40));
    LabelSnapshot { label: label.to_owned(), finished, failed, run_time, queue_time }
}

fn slow(rank: u32) -> SlowTask {
    SlowTask {
        task: 1_000 + u64::from(rank) * 7,
        label: if rank == 1 { String::new() } else { "decode".to_owned() },
        worker: format!("{}.1", rank % 2),
        run_time: Duration::from_millis(4_680) / (rank + 1),
        ago: Duration::from_secs(61 * u64::from(rank)),
    }
}

fn failure(number: u32) -> Failure {
    let (kind, text) = match number % 3 {
        0 => (FailureKind::WorkerDied, "lost its worker (pid 40001): killed by SIGSEGV"),
        1 => (FailureKind::Panicked, "panicked at src/main.rs:12:5: <b>not</b> a picture"),
        _ => (FailureKind::Deadline, "exceeded its deadline of 2s (ended after 2.001s)"),
    };
    Failure {
        task: 11_999 - u64::from(number) * 13,
        label: "decode".to_owned(),
        kind,
        text: text.to_owned(),
        worker: "1.2".to_owned(),
        ago: Duration::from_secs(9 * u64::from(number)),
    }
}

fn second(ago: u32) -> HistoryPoint {
    HistoryPoint {
        ago: Duration::from_secs(ago.into()),
        finished: u64::from(20 + ago * 7 % 31),
        failed: u64::from(ago.is_multiple_of(120)),
        max_queued: u64::from(300 + ago * 11 % 700),
        busy: 1 + ago % 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_consistent() {
        for workers in [0, 1, 2, 256] {
            let snapshot = PoolSnapshot::example(workers);
            let failed = snapshot.failures.values().sum::<u64>();
            assert_eq!(snapshot.workers.len(), workers as usize);
            assert_eq!(snapshot.finished, snapshot.succeeded + failed);
            assert_eq!(snapshot.pending, snapshot.queued + snapshot.running);
            assert_eq!(
                snapshot.enqueued,
                snapshot.finished + snapshot.cancelled + snapshot.pending
            );
        }
    }

    #[test]
    fn a_snapshot_survives_json() {
        let snapshot = PoolSnapshot::example(3);
        let text = serde_json::to_string(&snapshot).unwrap();
        assert_eq!(serde_json::from_str::<PoolSnapshot>(&text).unwrap(), snapshot);
        assert!(
            text.contains(r#""failures":{"panicked":2,"worker_died":3,"deadline":1}"#),
            "{text}"
        );
    }
}
