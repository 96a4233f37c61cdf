//! Adds what happens to the pool's timeline.

use brigade_scheduler::{Event, InterruptedAttempt};
use brigade_supervisor::note;
use brigade_sys::clock::Monotonic;
use brigade_wire::{Attempt, TaskId, WorkerId};

use super::Drive;
use super::outcome::{DeathReport, EventData, RunReport, WorkerOutcome};
use super::owner::Role;
use super::shared::{Core, Shared};
use crate::cell::TaskCell;
use crate::error::PoolError;
use crate::timeline::{Entry, Ran, Timeline};

impl Core {
    /// Adds what an event says, before the scheduler handles it.
    #[inline]
    pub(super) fn observe_event(
        &self,
        now: Monotonic,
        event: &Event<TaskCell>,
        data: &EventData,
        shared: &Shared,
    ) {
        if let Some(timeline) = &shared.timeline {
            self.add(timeline, now, event, data);
        }
    }

    /// Adds the length of the queue, after the scheduler has handled an event.
    #[inline]
    pub(super) fn observe_queue(&self, now: Monotonic, shared: &Shared) {
        if let Some(timeline) = &shared.timeline {
            timeline.queue(self.scheduler.backlog(), now);
        }
    }

    #[cold]
    fn add(&self, timeline: &Timeline, now: Monotonic, event: &Event<TaskCell>, data: &EventData) {
        match (event, data) {
            (
                Event::Finished { worker, task, attempt, .. },
                EventData::Outcome(outcome, report),
            ) => {
                self.ran(timeline, (*worker, *task, *attempt), outcome, report, now);
            }
            (Event::Returned(returned), EventData::Outcome(outcome, report)) => {
                let attempt = (returned.worker, returned.task, returned.attempt);
                self.ran(timeline, attempt, outcome, report, now);
            }
            (Event::Died { worker, death }, EventData::Death(report)) => {
                self.died(timeline, *worker, &death.interrupted, report, now);
            }
            (Event::StartFailed { worker, .. }, _) => {
                timeline.add(Entry::NotStarted { worker: *worker, at: now });
            }
            _ => {}
        }
    }

    fn ran(
        &self,
        timeline: &Timeline,
        (worker, task, attempt): (WorkerId, TaskId, Attempt),
        outcome: &WorkerOutcome,
        report: &RunReport,
        now: Monotonic,
    ) {
        let Some(cell) = self.scheduler.due(worker).filter(|cell| cell.id == task) else { return };
        let chunk = cell.with_chunk_progress(|chunk| (chunk.answered, chunk.failures.is_empty()));
        let outcome = match (outcome, chunk) {
            (Err(kind), _) => kind.name(),
            (Ok(_), Some((_, false))) => "items_failed",
            (Ok(_), _) => "succeeded",
        };
        let (began, label) = (report.began, cell.label());
        let ended = began.saturating_add(report.run_time).min(now);
        let items = chunk.map(|(items, _)| items);
        timeline.add(Entry::Ran(Ran {
            worker,
            task,
            attempt,
            label,
            items,
            outcome,
            began,
            ended,
        }));
    }

    fn died(
        &self,
        timeline: &Timeline,
        worker: WorkerId,
        interrupted: &[InterruptedAttempt],
        report: &DeathReport,
        now: Monotonic,
    ) {
        let occupants = self.scheduler.occupants(worker);
        for interrupted in interrupted {
            let Some((_, task, attempt)) =
                occupants.iter().find(|(ring_index, ..)| *ring_index == interrupted.ring_index)
            else {
                continue;
            };
            let elapsed = report.interrupted.elapsed.unwrap_or_default();
            let elapsed = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
            let cell = self.scheduler.task(task.key);
            let is_chunk = cell.is_some_and(TaskCell::is_chunk);
            let items = interrupted.finished + u32::from(interrupted.in_item);
            timeline.add(Entry::Ran(Ran {
                worker,
                task: task.id,
                attempt: *attempt,
                label: cell.and_then(TaskCell::label),
                items: is_chunk.then_some(items),
                outcome: "interrupted",
                began: Monotonic::from_nanos(now.as_nanos().saturating_sub(elapsed)),
                ended: now,
            }));
        }
        let (exit, interrupted) = (report.death.exit, !interrupted.is_empty());
        timeline.add(Entry::Gone { worker, exit, interrupted, at: now });
    }
}

impl Shared {
    /// Adds that a process was ordered.
    pub(super) fn observe_order(&self, worker: WorkerId, at: Monotonic) {
        if let Some(timeline) = &self.timeline {
            timeline.add(Entry::Ordered { worker, at });
        }
    }

    /// Adds that a worker takes tasks, and when it began to run the initializer.
    pub(super) fn observe_ready(
        &self,
        worker: WorkerId,
        initializing: Option<Monotonic>,
        at: Monotonic,
    ) {
        if let Some(timeline) = &self.timeline {
            timeline.add(Entry::Ready { worker, initializing, at });
        }
    }

    /// Ends the timeline.
    pub(super) fn end_timeline(&self) {
        if let Some(timeline) = &self.timeline {
            timeline.end();
        }
    }
}

impl Drive {
    /// Starts the thread that writes the timeline.
    pub(super) fn start_timeline(&self) -> Result<(), PoolError> {
        if self.shared.timeline.is_none() {
            return Ok(());
        }
        self.run_user_code_thread("trace", Role::Other, |shared| {
            let Some(timeline) = &shared.timeline else { return };
            if let Err(error) = timeline.run(&shared.config.supervisor.pool) {
                note!(shared.supervisor.output, WARN, %error, "failed to write the timeline; it ends here");
            }
        })
    }
}
