//! Carries out the scheduler's actions.

use std::sync::Arc;

use brigade_scheduler::{
    Action, Event, Failure, KillCause, Removed, RetryWhy, Sending, TaskEnd, TaskRef,
};
use brigade_supervisor::{Connection, WorkerProcess, note};
use brigade_sys::clock::Monotonic;
use brigade_wire::link::LinkError;
use brigade_wire::ring::WakeUp;
use brigade_wire::slots::{Revocation, SlotTable, slot_tag};
use brigade_wire::{Run, RunInline, RunLimits, ToWorker, WorkerId};

use crate::cell::TaskCell;
use crate::deadlines::TaskDeadlines;
use crate::drive::deferred::{Deferred, ToKill};
use crate::drive::observer::{End, Observer, Ran};
use crate::drive::outcome::{EventData, outcome_of};
use crate::drive::shared::Core;
use crate::drive::starts::worker_slot::WorkerSlot;
use crate::drive::watch::slow::report_more;
use crate::emitted::Assignment;
use crate::payload::{Argument, ArgumentRef, Value};

/// Returns a clause that fits after "because".
fn reason(why: RetryWhy) -> &'static str {
    match why {
        RetryWhy::Death => "its worker died",
        RetryWhy::Failure(Failure::Panic) => "it panicked",
        RetryWhy::Failure(Failure::Error) => "it returned an error",
    }
}

/// The number of bytes of an argument that was sent, and whether to wake the worker.
type Sent = (usize, Result<Option<WakeUp>, LinkError>);

impl Core {
    /// Carries out one action.
    pub(in crate::drive) fn carry_out(
        &mut self,
        now: Monotonic,
        action: Action<TaskCell>,
        data: &mut EventData,
        deferred: &mut Deferred,
    ) {
        match action {
            Action::Accepted { task } => {
                if let Some(cell) = self.scheduler.task(task.key) {
                    cell.set_key(task.key);
                    self.observers.accepted(cell);
                }
            }
            Action::Send(sending) => {
                self.prepare_for(sending.worker, sending.key, deferred);
                match self.send(sending) {
                    Ok(wake_up) => deferred.rouse(wake_up),
                    Err(error) => self.not_sent(sending.worker, &error, deferred),
                }
            }
            Action::Revoke { worker, ring_index, task, why } => {
                let found = self.revoke(worker, ring_index, task);
                let answer = Event::RevokeAnswer { task, worker, ring_index, why, found };
                self.replies.push_back(answer);
            }
            Action::Complete { removed, end } => self.complete(now, removed, end, data, deferred),
            Action::Spawn { worker } => {
                self.observers.worker_started(now, worker);
                let process = Arc::new(WorkerProcess::new(worker));
                let slot = worker.slot as usize;
                if slot >= self.worker_slots.len() {
                    self.worker_slots.resize_with(slot + 1, || None);
                }
                self.worker_slots[slot] = Some(WorkerSlot::new(Arc::clone(&process)));
                deferred.work().to_start.push(process);
            }
            Action::Stop { worker } => {
                self.observers.worker_leaving(now, worker);
                self.tell(worker, &ToWorker::Stop);
            }
            Action::Terminate { worker } => {
                self.observers.worker_leaving(now, worker);
                let slot = self.worker_slot(worker);
                if let Some(Err(error)) = slot.map(|slot| slot.process.terminate()) {
                    let pid = self.pid(worker);
                    note!(deferred, WARN, %worker, pid, %error, "cannot terminate a worker");
                }
            }
            Action::Kill { worker, cause, at_once } => {
                self.observers.worker_leaving(now, worker);
                self.kill(worker, cause, at_once, deferred);
            }
            Action::Observe { worker, ring_index, task } => {
                let seen = Box::new(self.observe(worker, ring_index, task));
                self.replies.push_back(Event::Observed { task, seen });
            }
            Action::Inspect { worker } => {
                if self.is_stopped(worker) {
                    self.replies.push_back(Event::FoundStopped { worker });
                }
            }
            Action::Retried { task, attempt, worker, why } => {
                // It may have been an item of another task.
                self.set_key(task);
                let cell = self.scheduler.task(task.key);
                if let Some(waiters) = cell.and_then(|cell| cell.run_again(attempt)) {
                    deferred.work().to_notify.push(Box::new(waiters));
                }
                note!(
                    deferred, INFO, task = %task.id, attempt = attempt.get(), %worker,
                    "task will be retried because {}", reason(why)
                );
            }
            Action::Requeued { task, worker } => {
                self.set_key(task);
                note!(
                    deferred, DEBUG, task = %task.id, %worker,
                    "task had not started and returns to the queue"
                );
            }
            Action::Retired { worker, why } => {
                let pid = self.pid(worker);
                note!(deferred, DEBUG, %worker, pid, cause = why, "worker asked to exit");
            }
            Action::TaskKilled { worker, task, cause } => {
                let (pid, cause) = (self.pid(worker), describe(cause));
                note!(
                    deferred, DEBUG, %worker, pid, %task, cause, "task ended by killing its worker"
                );
            }
            Action::Slow { task, elapsed } => self.report_slow(now, task, elapsed, deferred),
            Action::MoreSlow { tasks } => report_more(tasks, deferred),
            Action::Broke => {
                let reason = self.scheduler.broken_reason();
                note!(deferred, ERROR, reason = reason.as_deref(), "pool broken");
            }
            Action::Ended => {
                self.elapsed = self.shutdown_began.map(|began| began.elapsed());
                note!(deferred, DEBUG, "pool ended");
                deferred.work().ended = true;
            }
        }
    }

    fn kill(&mut self, worker: WorkerId, cause: KillCause, at_once: bool, deferred: &mut Deferred) {
        // The error of such a task says where it was.
        let sample = matches!(
            cause,
            KillCause::Deadline | KillCause::Section | KillCause::Limit | KillCause::Asked
        );
        let (pid, is_broken) = (self.pid(worker), cause == KillCause::Protocol);
        note!(deferred, INFO, %worker, pid, cause = describe(cause), "worker killed");
        if let Some(worker_slot) = self.worker_slot_mut(worker) {
            if let Some(connection) = &mut worker_slot.connection {
                // Nothing that it sends from now on counts, or is waited for.
                connection.broken |= is_broken;
            }
            let process = Arc::clone(&worker_slot.process);
            deferred.work().to_kill.push(ToKill { process, at_once, sample });
        }
    }

    /// Releases the tasks that wait for others to take the items that they emit, because nobody
    /// may do so any more.
    pub(in crate::drive) fn stop_emitting(&self) {
        for slot in self.worker_slots.iter().flatten() {
            for (_, task, _) in self.scheduler.occupants(slot.id) {
                if let Some(emitted) = self.scheduler.task(task.key).and_then(|cell| cell.emitted())
                {
                    emitted.stop();
                }
            }
        }
    }

    fn set_key(&self, task: TaskRef) {
        if let Some(cell) = self.scheduler.task(task.key) {
            cell.set_key(task.key);
        }
    }

    #[inline]
    fn complete(
        &mut self,
        now: Monotonic,
        Removed { task, attempt, items, submitted }: Removed<TaskCell>,
        end: TaskEnd,
        data: &mut EventData,
        deferred: &mut Deferred,
    ) {
        let ran = Ran::of(data, end);
        let outcome =
            if let (TaskEnd::Reported, EventData::Outcome(Ok(value), _)) = (end, &mut *data) {
                // By far the most common case.
                Ok(std::mem::replace(value, Value::EMPTY))
            } else {
                let broken = self.scheduler.broken_reason();
                outcome_of(&task, attempt, end, data, broken.as_deref())
            };
        let way = end;
        let end = End { task: &task, attempt, way, items, submitted, ran, outcome: &outcome };
        self.observers.ended(now, &end);
        if let Some(record) = task.record() {
            record.finished(attempt);
            if let Some(emitted) = &record.emitted {
                // A thread that was given up may wait for a grant.
                emitted.stop();
            }
        }
        deferred.complete(task, outcome);
    }

    /// Revokes a task in the worker's table, unless it has begun.
    fn revoke(&self, worker: WorkerId, ring_index: u16, task: TaskRef) -> Revocation {
        let attempt = self.scheduler.assignment(task).map(|(.., attempt)| attempt);
        match (attempt, self.connection(worker)) {
            (Some(attempt), Some(connection)) => {
                let found = match connection.table.revoke(ring_index, slot_tag(task.id, attempt)) {
                    // Revoked when the worker crashed.
                    Revocation::Neither if self.is_spared_by_crash(worker, ring_index) => {
                        Revocation::Revoked
                    }
                    found => found,
                };
                let cell = self.scheduler.task(task.key).filter(|_| found == Revocation::Revoked);
                if let Some(emitted) = cell.and_then(|cell| cell.emitted()) {
                    emitted.end();
                }
                found
            }
            _ => Revocation::Begun,
        }
    }

    /// Returns `true` if a worker that is about to end has not begun the task.
    fn is_spared_by_crash(&self, worker: WorkerId, ring_index: u16) -> bool {
        let interrupted = self.worker_slot(worker).and_then(|it| it.interrupted.as_ref());
        interrupted.is_some_and(|it| it.attempts.iter().all(|at| at.ring_index != ring_index))
    }

    #[inline]
    fn send(&mut self, sending: Sending) -> Result<Option<WakeUp>, LinkError> {
        let sent = self.send_few(sending).or_else(|| self.send_any(sending));
        let Some((bytes, sent)) = sent else { return Ok(None) };
        self.observers.sent(sending.worker, bytes);
        let wake_up = match sent {
            // The worker is gone, and its death returns the task to the queue.
            Err(LinkError::Closed) => None,
            sent => sent?,
        };
        self.woke_worker = wake_up.is_some();
        Ok(wake_up)
    }

    /// Sends a task with few bytes and nothing rare, which is by far the most common case. Returns
    /// `None` for any other.
    #[inline]
    fn send_few(&mut self, sending: Sending) -> Option<Sent> {
        let Sending { worker, ring_index, key, id: task, attempt, unanswered } = sending;
        let worker_slot = self.worker_slots.get_mut(worker.slot as usize)?.as_mut()?;
        let (connection, cell) = (worker_slot.connection.as_mut()?, self.scheduler.task(key)?);
        if !cell.is_ordinary() || self.scheduler.granted(key).is_some() {
            return None;
        }
        cell.with_argument(|argument, _| {
            let ArgumentRef::Bytes(argument) = argument else { return None };
            let run = RunInline { task, attempt, ring_index, function: cell.offset() };
            // The worker has the cache line of the state word. A lock taken after this store would
            // wait for the line.
            connection.table.arm(ring_index, slot_tag(task, attempt));
            Some((argument.len(), connection.send_words(&run.words(), argument, unanswered)))
        })?
    }

    /// Sends any task. Chunks of maps are sent this way, so it is not cold.
    #[inline(never)]
    fn send_any(&mut self, sending: Sending) -> Option<Sent> {
        let Sending { worker, ring_index, key, id: task, attempt, unanswered } = sending;
        let worker_slot = self.worker_slots.get_mut(worker.slot as usize)?.as_mut()?;
        let process = &worker_slot.process;
        let (connection, cell) = (worker_slot.connection.as_mut()?, self.scheduler.task(key)?);
        begin(cell, sending, &connection.table, self.scheduler.is_open());
        let granted = self.scheduler.granted(key).map(|granted| self.resources.describe(granted));
        let (head, limit) = (&mut self.head, self.message_limit);
        let context = cell.with_span(|span| span.send(worker, attempt)).flatten();
        let sent = cell.with_argument(|argument, chunk| {
            let whole = argument.whole();
            let has_segments = whole.is_some_and(Argument::has_segments);
            let has_reach = connection.results.is_some();
            let inlined = whole.filter(|_| has_segments).and_then(|whole| {
                let can_read = |buffer: &_| connection.share(process, buffer);
                whole.inlined(chunk.is_some(), limit, has_reach, can_read)
            });
            let kept = whole.filter(|_| inlined.is_none()).and_then(Argument::kept);
            if let (Some(kept), Some(results)) = (kept, &connection.results) {
                results.reach();
                kept.send();
            }
            let apart = kept.map_or(0, |kept| kept.size());
            let bytes = inlined.as_ref().map_or(argument.as_bytes().len(), Vec::len) + apart;
            let location = whole.and_then(Argument::location);
            let location = location.filter(|_| inlined.is_none() && connection.reads_arguments());
            let argument = match (&inlined, location) {
                (Some(inlined), _) => inlined,
                (None, Some(_)) => &[][..],
                (None, None) => argument.as_bytes(),
            };
            let run = Run {
                task,
                attempt,
                ring_index,
                function: cell.function(connection.same_build),
                chunk,
                limits: cell.deadlines().map_or(RunLimits::NONE, TaskDeadlines::run_limits),
                location,
                has_segments,
                trace_context: context.as_deref(),
                granted: granted.as_deref(),
                argument,
            };
            head.clear();
            ToWorker::Run(run).encode_head(head);
            connection.table.arm(ring_index, slot_tag(task, attempt));
            (bytes, connection.send(head, argument, unanswered))
        });
        // A task that is assigned has no outcome yet.
        debug_assert!(sent.is_some(), "a task with an outcome was sent");
        sent
    }

    /// Kills a worker after a failed send. The frame is lost, and only the worker's death brings
    /// the task back.
    #[cold]
    fn not_sent(&mut self, worker: WorkerId, error: &LinkError, deferred: &mut Deferred) {
        let (pid, error) = (self.pid(worker), error.to_string());
        note!(deferred, WARN, %worker, pid, %error, "cannot send a task");
        self.replies.push_back(Event::Misbehaved { worker });
    }

    fn pid(&self, worker: WorkerId) -> Option<u32> {
        self.worker_slot(worker).and_then(|slot| slot.process.pid())
    }

    pub(in crate::drive) fn worker_slot(&self, worker: WorkerId) -> Option<&WorkerSlot> {
        self.worker_slots.get(worker.slot as usize)?.as_ref().filter(|slot| slot.id == worker)
    }

    pub(in crate::drive) fn worker_slot_mut(
        &mut self,
        worker: WorkerId,
    ) -> Option<&mut WorkerSlot> {
        self.worker_slots.get_mut(worker.slot as usize)?.as_mut().filter(|slot| slot.id == worker)
    }

    pub(in crate::drive) fn connection(&self, worker: WorkerId) -> Option<&Connection> {
        self.worker_slot(worker)?.connection.as_ref()
    }

    pub(in crate::drive) fn connection_mut(&mut self, worker: WorkerId) -> Option<&mut Connection> {
        self.worker_slot_mut(worker)?.connection.as_mut()
    }
}

/// Begins an attempt at a task of which items or emitted values are known one by one.
fn begin(cell: &TaskCell, sending: Sending, table: &Arc<SlotTable>, is_open: bool) {
    let Sending { worker, ring_index, attempt, .. } = sending;
    if cell.is_chunk() {
        table.reset_items(ring_index);
        cell.with_chunk_progress(|chunk| chunk.begin_anew(attempt));
    }
    if let Some(emitted) = cell.emitted() {
        let table = Arc::clone(table);
        emitted.begin(Assignment { worker, attempt, table, ring_index }, is_open);
    }
}

fn describe(cause: KillCause) -> &'static str {
    match cause {
        KillCause::Protocol => "broke the protocol",
        KillCause::Shutdown => "pool shut down",
        KillCause::Stopped => "stopped by a signal while the pool drains",
        KillCause::Deadline => "task exceeded its deadline",
        KillCause::Section => "task exceeded the time limit of a section",
        KillCause::Limit => "task exceeded a limit on a resource",
        KillCause::Denied => "task made a call that its sandbox forbids",
        KillCause::Asked => "task was killed",
        KillCause::Unwanted => "no longer needed",
    }
}
