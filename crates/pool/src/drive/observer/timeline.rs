//! Adds what happens to the pool's timeline.

use std::sync::Arc;

use brigade_scheduler::{Event, InterruptedAttempt, Scheduler};
use brigade_sys::clock::Monotonic;
use brigade_trace::timeline::{Entry, Ran, Timeline};
use brigade_wire::{Attempt, TaskId, WorkerId};

use crate::cell::TaskCell;
use crate::config::Config;
use crate::drive::observer::{Observer, ObserverThread, Started};
use crate::drive::outcome::{DeathReport, EventData, RunReport, WorkerOutcome};
use crate::error::PoolError;

/// Creates the file of the timeline, if the pool writes one.
pub(in crate::drive) fn create(config: &Config) -> Result<Option<Arc<Timeline>>, PoolError> {
    let Some(path) = &config.trace else { return Ok(None) };
    let timeline = Timeline::create(path).map_err(PoolError::file("trace", path))?;
    Ok(Some(Arc::new(timeline)))
}

impl Observer for Option<Arc<Timeline>> {
    #[inline]
    fn event(
        &mut self,
        now: Monotonic,
        event: &Event<TaskCell>,
        data: &EventData,
        scheduler: &Scheduler<TaskCell>,
    ) {
        if let Some(timeline) = self {
            add(timeline, scheduler, now, event, data);
        }
    }

    #[inline]
    fn handled(&mut self, now: Monotonic, scheduler: &Scheduler<TaskCell>) {
        if let Some(timeline) = self {
            timeline.queue(scheduler.backlog(), now);
        }
    }

    fn worker_started(&mut self, at: Monotonic, worker: WorkerId) {
        if let Some(timeline) = self {
            timeline.add(Entry::Ordered { worker, at });
        }
    }

    fn worker_ready(&mut self, at: Monotonic, worker: WorkerId, ready: Started) {
        if let Some(timeline) = self {
            timeline.add(Entry::Ready { worker, initializing: ready.initializing, at });
        }
    }

    fn pool_ended(&mut self) {
        if let Some(timeline) = self {
            timeline.end();
        }
    }

    fn thread(&self) -> Option<(&'static str, ObserverThread)> {
        let timeline = self.clone()?;
        Some(("trace", Box::new(move |pool| timeline.run(pool))))
    }
}

#[cold]
fn add(
    timeline: &Timeline,
    scheduler: &Scheduler<TaskCell>,
    now: Monotonic,
    event: &Event<TaskCell>,
    data: &EventData,
) {
    match (event, data) {
        (Event::Finished { task, attempt, .. }, EventData::Outcome(outcome, report)) => {
            ran(timeline, scheduler, (*task, *attempt), outcome, report, now);
        }
        (Event::Returned(it), EventData::Outcome(outcome, report)) => {
            ran(timeline, scheduler, (it.task, it.attempt), outcome, report, now);
        }
        (Event::Died { worker, death }, EventData::Death(report)) => {
            died(timeline, scheduler, *worker, &death.interrupted, report, now);
        }
        (Event::StartFailed { worker, .. }, _) => {
            timeline.add(Entry::NotStarted { worker: *worker, at: now });
        }
        _ => {}
    }
}

fn ran(
    timeline: &Timeline,
    scheduler: &Scheduler<TaskCell>,
    (task, attempt): (TaskId, Attempt),
    outcome: &WorkerOutcome,
    report: &RunReport,
    now: Monotonic,
) {
    let worker = report.worker;
    let Some(cell) = scheduler.due(worker).filter(|cell| cell.id == task) else { return };
    if scheduler.is_condemned(worker) {
        return;
    }
    let chunk = cell.with_chunk_progress(|chunk| (chunk.answered, chunk.failures.is_empty()));
    let outcome = match (outcome, chunk) {
        (Err(kind), _) => kind.name(),
        (Ok(_), Some((_, false))) => "items_failed",
        (Ok(_), _) => "succeeded",
    };
    let (began, label) = (report.began, cell.label().cloned());
    let ended = began.saturating_add(report.run_time).min(now);
    let items = chunk.map(|(items, _)| items);
    timeline.add(Entry::Ran(Ran { worker, task, attempt, label, items, outcome, began, ended }));
}

fn died(
    timeline: &Timeline,
    scheduler: &Scheduler<TaskCell>,
    worker: WorkerId,
    interrupted: &[InterruptedAttempt],
    report: &DeathReport,
    now: Monotonic,
) {
    let occupants = scheduler.occupants(worker);
    for interrupted in interrupted {
        let Some((_, task, attempt)) =
            occupants.iter().find(|(ring_index, ..)| *ring_index == interrupted.ring_index)
        else {
            continue;
        };
        let elapsed = report.interrupted.elapsed.unwrap_or_default();
        let elapsed = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let cell = scheduler.task(task.key);
        let is_chunk = cell.is_some_and(|cell| cell.is_chunk());
        let items = interrupted.finished + u32::from(interrupted.in_item);
        timeline.add(Entry::Ran(Ran {
            worker,
            task: task.id,
            attempt: *attempt,
            label: cell.and_then(|cell| cell.label().cloned()),
            items: is_chunk.then_some(items),
            outcome: "interrupted",
            began: Monotonic::from_nanos(now.as_nanos().saturating_sub(elapsed)),
            ended: now,
        }));
    }
    let (exit, interrupted) = (report.death.exit, !interrupted.is_empty());
    timeline.add(Entry::Gone { worker, exit, interrupted, at: now });
}
