//! Records the end of a task.

use std::sync::atomic::Ordering;

use brigade_metrics::{FailureKind, Run, Timing};
use brigade_scheduler::TaskEnd;
use brigade_sys::clock::{self, Monotonic};
use brigade_wire::TaskId;

use super::Recording;
use crate::chunk::ChunkProgress;
use crate::drive::observer::{End, Ran};
use crate::error::{TaskError, TaskErrorKind};

/// Number of failed items of a chunk that are described; see `Recorder::failed`.
const DESCRIBED: usize = 20;

/// In nanoseconds, the run time below which nobody asks for a slow task.
const SHORT: u64 = 1_000_000;

/// The times of a task, in nanoseconds.
struct EndedTimes {
    queue: Option<u64>,
    run: Option<u64>,
    delivery: Option<u64>,
}

impl Recording {
    #[inline]
    pub(super) fn record_end(&mut self, now: Monotonic, end: &End<'_>) {
        if end.items == 0 {
            // It was not accepted.
        } else if end.way == TaskEnd::Cancelled {
            self.recorder.cancelled(end.items);
        } else if end.task.is_chunk() {
            end.task.with_chunk_progress(|chunk| self.chunk_ended(now, end, chunk));
        } else {
            self.task_ended(now, end);
        }
    }

    #[inline]
    fn task_ended(&mut self, now: Monotonic, end: &End<'_>) {
        let weight = u32::from(end.task.weight.load(Ordering::Relaxed));
        // By far the most common case. Whether the run time is a lie is not worth a look at the
        // clock; see `End::times`.
        if weight == 0
            && let (Some(Ran { worker, run_time: Some(run_time), .. }), Ok(value)) =
                (end.ran, end.outcome)
            && run_time < SHORT
            && end.task.label().is_none()
            && self.recorder.succeeded(now.as_nanos(), worker.slot, run_time, value.len() as u64)
        {
            return;
        }
        self.task_ended_in_full(now, end, weight);
    }

    #[inline(never)]
    fn task_ended_in_full(&mut self, now: Monotonic, end: &End<'_>, weight: u32) {
        let (arrival, times) = end.times(now, weight > 0);
        let bytes = end.outcome.as_ref().map_or(0, |value| value.len() as u64);
        let failed = u32::from(end.outcome.is_err());
        let run = end.run(&times, weight, bytes, failed);
        self.recorder.finished(arrival, &run);
        if let Err(error) = end.outcome {
            self.recorder.failed(arrival, kind_of(error), 1, &run, error);
        }
    }

    fn chunk_ended(&mut self, now: Monotonic, end: &End<'_>, chunk: &ChunkProgress) {
        let (arrival, times) = end.times(now, true);
        // Answers before a chunk began are a lie; see `ChunkProgress::begin_anew`.
        let has_run = matches!(end.way, TaskEnd::Reported | TaskEnd::Finished);
        let answered = if has_run { chunk.answered.min(end.items) } else { 0 };
        let failures = if has_run { &*chunk.failures } else { &[] };
        let rest = if end.outcome.is_err() { end.items - answered } else { 0 };
        let failed = rest + u32::try_from(failures.len()).unwrap_or(u32::MAX).min(answered);
        let run = end.run(&times, end.items, chunk.result_bytes(), failed);
        self.recorder.finished(arrival, &run);
        // Only the last ones are described, but all are counted by their kinds.
        let (counted, described) = failures.split_at(failures.len().saturating_sub(DESCRIBED));
        for (index, kind) in counted {
            let run = Run { task: end.item(*index).get(), ..run };
            self.recorder.failed(arrival, failure_kind(kind), 1, &run, &"");
        }
        for (index, kind) in described {
            let id = end.item(*index);
            let error =
                TaskError::new(kind.clone()).of_task(id, end.attempt, end.task.label().cloned());
            let run = Run { task: id.get(), ..run };
            self.recorder.failed(arrival, failure_kind(kind), 1, &run, &error);
        }
        if let Err(error) = end.outcome {
            let run = Run { task: end.item(answered).get(), ..run };
            self.recorder.failed(arrival, kind_of(error), rest, &run, error);
        }
    }
}

impl<'a> End<'a> {
    fn item(&self, index: u32) -> TaskId {
        TaskId::new(self.task.id.get() + u64::from(index))
    }

    #[inline]
    fn run(&self, times: &EndedTimes, weight: u32, bytes: u64, failed: u32) -> Run<'a> {
        let timing = (weight > 0).then_some(Timing {
            weight,
            queue_time: times.queue,
            delivery_time: times.delivery,
        });
        Run {
            task: self.task.id.get(),
            label: self.task.label().map(AsRef::as_ref),
            items: self.items,
            failed,
            worker: self.ran.map(|ran| (ran.worker.slot, ran.worker.generation)),
            run_time: times.run,
            bytes,
            timing,
        }
    }

    /// Returns the time at which the outcome arrived, and the times before it. The worker's stamps
    /// may be lies, so the run lies between submission and arrival.
    #[inline]
    fn times(&self, now: Monotonic, is_timed: bool) -> (u64, EndedTimes) {
        let (submitted, mut arrival) = (self.submitted.as_nanos(), now.as_nanos());
        let untimed = |run| (now.as_nanos(), EndedTimes { queue: None, run, delivery: None });
        let Some(Ran { began, run_time: Some(run_time), .. }) = self.ran else {
            return untimed(None);
        };
        let Some(began) = began else { return untimed(Some(run_time)) };
        let began = began.as_nanos().max(submitted);
        if began.saturating_add(run_time) > arrival {
            // The time was read for several outcomes, and this one came after that. For a short run
            // that is not timed, reading it again would cost more than it is worth.
            if !is_timed && run_time < SHORT {
                return untimed(Some(run_time));
            }
            arrival = clock::now().as_nanos();
        }
        let began = began.min(arrival);
        let run_time = run_time.min(arrival - began);
        let delivery = arrival - began - run_time;
        let queue = Some(began.saturating_sub(submitted));
        (arrival, EndedTimes { queue, run: Some(run_time), delivery: Some(delivery) })
    }
}

fn kind_of(error: &TaskError) -> FailureKind {
    if error.is_queue_deadline() { FailureKind::QueueDeadline } else { failure_kind(error.kind()) }
}

pub(in crate::drive) fn failure_kind(kind: &TaskErrorKind) -> FailureKind {
    match kind {
        TaskErrorKind::Panicked { .. } => FailureKind::Panicked,
        TaskErrorKind::WorkerDied { .. } => FailureKind::WorkerDied,
        TaskErrorKind::DeadlineExceeded { .. } => FailureKind::Deadline,
        TaskErrorKind::LimitExceeded { .. } => FailureKind::Limit,
        TaskErrorKind::Denied { .. } => FailureKind::Denied,
        TaskErrorKind::Killed | TaskErrorKind::Cancelled => FailureKind::Killed,
        TaskErrorKind::Codec { .. } => FailureKind::Codec,
        TaskErrorKind::Function { .. } => FailureKind::Function,
        // The pool is broken, closed or forked.
        _ => FailureKind::PoolBroken,
    }
}
