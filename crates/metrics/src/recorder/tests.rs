//! The recorder against a model that keeps everything.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Accept { items: u32 },
    Cancel { items: u32 },
    Finish { items: u32, failed: u32, run_time: u64, queue_time: u64, label: u8, slot: u32 },
}

fn step() -> impl Strategy<Value = Step> {
    let finish = (1..50_u32, 0..50_u32, 0..1_u64 << 42, 0..1_u64 << 30, 0..90_u8, 0..4_u32);
    prop_oneof![
        (1..100_u32).prop_map(|items| Step::Accept { items }),
        (1..10_u32).prop_map(|items| Step::Cancel { items }),
        finish.prop_map(|(items, failed, run_time, queue_time, label, slot)| {
            let failed = failed.min(items);
            Step::Finish { items, failed, run_time, queue_time, label, slot }
        }),
    ]
}

fn quantile(sorted: &[u64], of_hundred: usize) -> u64 {
    sorted.get(sorted.len() * of_hundred / 100).copied().unwrap_or(0)
}

proptest! {
    #[test]
    fn a_record_is_what_a_model_with_all_samples_says(
        steps in prop::collection::vec(step(), 0..200)
    ) {
        let mut recorder = Recorder::new(0);
        for slot in 0..4 {
            recorder.worker_started((slot, 1), 0);
        }
        let (mut enqueued, mut cancelled, mut succeeded, mut failed) = (0, 0, 0, 0);
        let (mut runs, mut queues) = (Vec::new(), Vec::new());
        for (now, step) in (1..).zip(&steps) {
            match *step {
                Step::Accept { items } => {
                    enqueued += u64::from(items);
                    recorder.accepted(now, items, u64::from(items), 1);
                }
                Step::Cancel { items } => {
                    cancelled += u64::from(items);
                    recorder.cancelled(items);
                }
                Step::Finish { items, failed: bad, run_time, queue_time, label, slot } => {
                    let label = format!("label {label}");
                    let timing = Timing {
                        weight: items,
                        queue_time: Some(queue_time),
                        delivery_time: None,
                    };
                    let run = Run {
                        task: now,
                        label: Some(&label),
                        items,
                        failed: bad,
                        worker: Some((slot, 1)),
                        run_time: Some(run_time),
                        bytes: 3,
                        timing: Some(timing),
                    };
                    recorder.finished(now, &run);
                    recorder.failed(now, FailureKind::Panicked, bad, &run, &"no");
                    succeeded += u64::from(items - bad);
                    failed += u64::from(bad);
                    let time = run_time / u64::from(items);
                    runs.extend(std::iter::repeat_n(time, items as usize));
                    queues.extend(std::iter::repeat_n(queue_time, items as usize));
                }
            }
        }
        let snapshot = recorder.measure(1_000).summarize();
        prop_assert_eq!(snapshot.enqueued, enqueued);
        prop_assert_eq!(snapshot.cancelled, cancelled);
        prop_assert_eq!((snapshot.finished, snapshot.succeeded), (succeeded + failed, succeeded));
        prop_assert_eq!(snapshot.failures.values().sum::<u64>(), failed);
        runs.sort_unstable();
        queues.sort_unstable();
        for (sorted, found) in [(&runs, snapshot.run_time), (&queues, snapshot.queue_time)] {
            prop_assert_eq!(found.count, sorted.len() as u64);
            for (of_hundred, found) in [(50, found.p50), (90, found.p90), (99, found.p99)] {
                let exact = quantile(sorted, of_hundred);
                let found = u64::try_from(found.as_nanos()).unwrap();
                // Above one hour, times are not told apart.
                let known = exact.min(3_600_000_000_000);
                prop_assert!(found.abs_diff(known) <= known / 100 || exact > known);
            }
        }
        let of_workers = |of: fn(&crate::WorkerSnapshot) -> u64| {
            snapshot.workers.iter().map(of).sum::<u64>()
        };
        prop_assert_eq!(of_workers(|worker| worker.tasks), snapshot.finished);
        prop_assert_eq!(of_workers(|worker| worker.failures), failed);
        prop_assert_eq!(of_workers(|worker| worker.bytes_out), snapshot.bytes_out);
        prop_assert_eq!(
            snapshot.labels.iter().map(|label| label.finished).sum::<u64>(),
            snapshot.finished
        );
        prop_assert!(snapshot.labels.len() <= 65 && snapshot.slowest.len() <= 20);
        let slowest: Vec<_> = snapshot.slowest.iter().map(|task| task.run_time).collect();
        prop_assert!(slowest.is_sorted_by(|a, b| a >= b));
        prop_assert!(slowest.first().is_none_or(|time| *time == snapshot.run_time.max));
    }
}

#[test]
fn the_history_shows_how_a_queue_drains() {
    const SECOND: u64 = 1_000_000_000;
    let mut recorder = Recorder::new(0);
    for task in 0..6 {
        recorder.accepted(task, 1, task.saturating_sub(2), 2);
    }
    for task in 1..=6 {
        recorder.finished(task * SECOND, &Run { task, items: 1, ..Run::default() });
    }
    let history = recorder.measure(7 * SECOND).snapshot.history;
    let points: Vec<_> = history.iter().map(|point| (point.max_queued, point.busy)).collect();
    assert_eq!(points, [(3, 2), (4, 2), (3, 2), (2, 2), (1, 2), (0, 2), (0, 1)]);
}

proptest! {
    #[test]
    fn successes_counted_at_a_time_are_recorded_like_any_other(
        steps in prop::collection::vec((0..5_u8, 0..1_u64 << 31, 0..20_u64, 0..3_u32), 0..300)
    ) {
        let (mut each, mut several) = (Recorder::new(0), Recorder::new(0));
        let mut now = 0;
        for recorder in [&mut each, &mut several] {
            recorder.worker_started((0, 1), 0);
            recorder.worker_started((1, 1), 0);
        }
        for (task, (kind, later, run_time, slot)) in (0..).zip(steps) {
            if kind == 0 {
                now += later;
                for recorder in [&mut each, &mut several] {
                    recorder.accepted(now, 7, 5, 2);
                }
                continue;
            }
            let (worker, run_time) = (Some((slot, 1)), Some(run_time));
            let failed = u32::from(kind == 1);
            let run = Run { task, items: 1, failed, worker, run_time, bytes: 3, ..Run::default() };
            each.finished(now, &run);
            if failed > 0 || !several.succeeded(now, slot, run_time.unwrap(), run.bytes) {
                several.finished(now, &run);
            }
            if kind == 2 {
                prop_assert_eq!(each.measure(now).snapshot, several.measure(now).snapshot);
            }
        }
        prop_assert_eq!(each.measure(now).snapshot, several.measure(now).snapshot);
    }
}
