//! Carrying out what the machine asks for.

use std::sync::Arc;

use brigade_wire::link::LinkError;
use brigade_wire::slots::{Revocation, SlotState, slot_tag};
use brigade_wire::{Attempt, Place, Run, RunLimits, TaskId, ToWorker, WorkerId};
use tracing::{Level, debug, error, info, warn};

use super::afterwards::{Afterwards, Remains};
use super::outcome::{Facts, raw_outcome};
use super::post::{Life, Post};
use super::shared::{Core, Shared, now};
use crate::cell::{Completed, TaskCell};
use crate::chunk::ChunkProgress;
use crate::limits::Limits;
use crate::machine::{Action, End, Event, KillCause, Now, Observation, TaskKey, TaskRef};
use crate::payload::Argument;

impl Core {
    /// Handles an event and everything that follows from it.
    pub(super) fn handle(
        &mut self,
        now: Now,
        event: Event<Arc<TaskCell>>,
        mut facts: Facts,
        shared: &Shared,
        after: &mut Afterwards,
    ) {
        self.decide(now, event, after);
        loop {
            while let Some(action) = self.outbox.pop() {
                self.carry_out(action, &mut facts, shared, after);
            }
            match self.answers.pop_front() {
                Some(answer) => self.decide(now, answer, after),
                None => break,
            }
        }
        shared.reaper.sleep_until(self.machine.armed());
        self.wake_waiters(shared);
    }

    fn decide(&mut self, now: Now, event: Event<Arc<TaskCell>>, after: &mut Afterwards) {
        let Some(journal) = &mut self.journal else {
            return self.machine.handle(now, event, &mut self.outbox);
        };
        if let Err(error) = journal.record(&mut self.machine, now, event, &mut self.outbox) {
            after.note(Level::WARN, move |pool| {
                warn!(pool, %error, "failed to write the journal, which ends here");
            });
            self.journal = None;
        }
    }

    fn carry_out(
        &mut self,
        action: Action<Arc<TaskCell>>,
        facts: &mut Facts,
        shared: &Shared,
        after: &mut Afterwards,
    ) {
        match action {
            Action::Accepted { task } => {
                if let Some(entry) = self.machine.task(task.key) {
                    entry.set_place(task.key);
                }
            }
            Action::Send { worker, link_slot, key, id, attempt, ahead } => {
                if let Err(error) = self.send(worker, link_slot, key, id, attempt, ahead) {
                    // The frame is lost; only the worker's end brings the task back.
                    let pid = self.pid(worker);
                    after.note(
                        Level::WARN,
                        move |pool| warn!(pool, %worker, pid, %error, "failed to send a task"),
                    );
                    self.answers.push_back(Event::Misbehaved { worker });
                }
            }
            Action::Revoke { worker, link_slot, task, why } => {
                let attempt = self.machine.assignment(task).map(|(_, _, attempt)| attempt);
                let line = self.post(worker).and_then(|post| post.line.as_ref());
                let found = match (attempt, line) {
                    (Some(attempt), Some(line)) => {
                        line.slots.revoke(link_slot, slot_tag(task.id, attempt))
                    }
                    _ => Revocation::Begun,
                };
                self.answers.push_back(Event::RevokeAnswer { task, worker, link_slot, why, found });
            }
            Action::Complete { task, attempt, end, .. } => {
                self.complete(task, attempt, end, facts, after);
            }
            Action::Spawn { worker } => {
                let life = Life::new();
                let slot = worker.slot as usize;
                if slot >= self.posts.len() {
                    self.posts.resize_with(slot + 1, || None);
                }
                self.posts[slot] = Some(Post { id: worker, life: Arc::clone(&life), line: None });
                shared.order_spawn(worker, life);
            }
            Action::Stop { worker } => {
                if let Some(line) = self.post_mut(worker).and_then(|post| post.line.as_mut()) {
                    let mut head = Vec::new();
                    ToWorker::Stop.encode_head(&mut head);
                    // A worker that is gone has left already.
                    let _ = line.sender().send(&head, &[]);
                }
            }
            Action::Terminate { worker } => {
                if let Some(Err(error)) = self.post(worker).map(|post| post.life.terminate()) {
                    let pid = self.pid(worker);
                    after.note(
                        Level::WARN,
                        move |pool| warn!(pool, %worker, pid, %error, "failed to terminate a worker"),
                    );
                }
            }
            Action::Kill { worker, cause, at_once } => {
                let cause = describe(cause);
                let pid = self.pid(worker);
                after.note(
                    Level::INFO,
                    move |pool| info!(pool, %worker, pid, cause, "worker killed"),
                );
                // What a chunk has come to is known when its process is dead, and no item begins twice. The chunk that is
                // killed need not come first: what is before it may have answers that nobody has read.
                let at_once = at_once && !self.machine.under_way(worker).any(|task| task.is_chunk);
                if let Some(post) = self.post(worker) {
                    after.kill(worker, Arc::clone(&post.life), at_once);
                }
            }
            Action::Observe { worker, link_slot, task } => {
                let seen = Box::new(self.observe(worker, link_slot, task));
                self.answers.push_back(Event::Observed { task, seen });
            }
            Action::Inspect { worker } => {
                if self.post(worker).is_some_and(|post| post.life.is_stopped()) {
                    self.answers.push_back(Event::FoundStopped { worker });
                }
            }
            told @ (Action::Retired { .. }
            | Action::Condemned { .. }
            | Action::Retried { .. }
            | Action::Requeued { .. }
            | Action::Broke) => self.note(told, after),
            Action::Rearm => {
                self.machine.arm();
                after.wake_reaper = true;
            }
            Action::Ended => {
                self.elapsed = self.shutdown_began.map(|began| began.elapsed());
                after.note(Level::DEBUG, move |pool| debug!(pool, "pool ended"));
                after.ended = true;
            }
        }
    }

    fn complete(
        &self,
        task: Arc<TaskCell>,
        attempt: Attempt,
        end: End,
        facts: &mut Facts,
        after: &mut Afterwards,
    ) {
        let broken = self.machine.broken_reason();
        let outcome = raw_outcome(&task, attempt, end, facts, broken.as_deref());
        let Completed { watch, argument, is_large } = task.complete(outcome);
        if let Some(watch) = watch {
            after.tell(*watch);
        }
        if let Some(argument) = argument {
            after.free(Remains::Argument(argument));
        }
        if is_large {
            after.free(Remains::Task(task));
        }
    }

    /// What is to be told and not done.
    fn note(&self, action: Action<Arc<TaskCell>>, after: &mut Afterwards) {
        match action {
            Action::Retired { worker, why } => {
                let pid = self.pid(worker);
                after.note(
                    Level::DEBUG,
                    move |pool| debug!(pool, %worker, pid, cause = why, "worker asked to leave"),
                );
            }
            Action::Condemned { worker, task, cause } => {
                let (pid, cause) = (self.pid(worker), describe(cause));
                after.note(Level::DEBUG, move |pool| {
                    debug!(pool, %worker, pid, %task, cause, "task ended by killing its worker");
                });
            }
            Action::Retried { id, attempt, worker } => after.note(Level::INFO, move |pool| {
                info!(pool, task = %id, attempt = attempt.get(), %worker, "task will run again, its worker died");
            }),
            Action::Requeued { id, worker } => after.note(Level::DEBUG, move |pool| {
                debug!(pool, task = %id, %worker, "task had not begun and goes back to the queue");
            }),
            Action::Broke => {
                let reason = self.machine.broken_reason();
                after.note(
                    Level::ERROR,
                    move |pool| error!(pool, reason = reason.as_deref(), "pool broken"),
                );
            }
            _ => {}
        }
    }

    /// How far a worker says that it has come with what is in a slot of its table.
    fn observe(&self, worker: WorkerId, link_slot: u16, task: TaskRef) -> Observation {
        let line = self.post(worker).and_then(|post| post.line.as_ref());
        let attempt = self.machine.assignment(task).map(|(.., attempt)| attempt);
        let (Some(line), Some(attempt)) = (line, attempt) else {
            return Observation { began: None, section: None };
        };
        let began = match line.slots.state(link_slot) {
            SlotState::Running { since } => Some(since.since_zero()),
            // A table that was written over does not say that the task has begun; its time runs from now at the latest.
            _ => line.slots.may_have_begun(link_slot, slot_tag(task.id, attempt)).then(now),
        };
        let section = line.slots.section();
        Observation { began, section: section.map(|section| section.due.since_zero()) }
    }

    fn send(
        &mut self,
        worker: WorkerId,
        link_slot: u16,
        key: TaskKey,
        id: TaskId,
        attempt: Attempt,
        ahead: u16,
    ) -> Result<(), LinkError> {
        let Some(Some(post)) = self.posts.get_mut(worker.slot as usize) else { return Ok(()) };
        let (Some(line), Some(task)) = (post.line.as_mut(), self.machine.task(key)) else {
            return Ok(());
        };
        if task.is_chunk {
            line.slots.reset_items(link_slot);
            task.with_chunk_progress(ChunkProgress::begin_anew);
        }
        line.slots.arm(link_slot, slot_tag(id, attempt));
        self.head.clear();
        let function = task.callee.for_the_wire();
        let limits = task.limits.as_deref().map_or(RunLimits::NONE, Limits::run_limits);
        let reads_arena = line.results.is_some();
        let sent = task.with_argument(|argument, chunk| {
            let slot = link_slot;
            let (placed, argument): (_, &[u8]) = match argument {
                Argument::Inline(encoded) => (None, encoded),
                Argument::Placed(block) if !reads_arena => (None, block.as_bytes()),
                Argument::Placed(block) => {
                    let (offset, length) = (block.offset() as u64, block.len() as u64);
                    (Some(Place { offset, length }), &[])
                }
            };
            let run = ToWorker::Run(Run {
                task: id,
                attempt,
                slot,
                function,
                chunk,
                limits,
                placed,
                argument,
            });
            run.encode_head(&mut self.head);
            line.send(&self.head, argument, ahead)
        });
        self.woke_worker = line.woke_worker();
        // A task that is assigned has no outcome yet.
        debug_assert!(sent.is_some(), "a task with an outcome was sent");
        match sent.unwrap_or(Ok(())) {
            // The worker is gone, and its death puts the task back into the queue.
            Ok(()) | Err(LinkError::Closed) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn pid(&self, worker: WorkerId) -> Option<u32> {
        self.post(worker).and_then(|post| post.life.pid())
    }

    pub(super) fn post(&self, worker: WorkerId) -> Option<&Post> {
        self.posts.get(worker.slot as usize)?.as_ref().filter(|post| post.id == worker)
    }

    pub(super) fn post_mut(&mut self, worker: WorkerId) -> Option<&mut Post> {
        self.posts.get_mut(worker.slot as usize)?.as_mut().filter(|post| post.id == worker)
    }
}

fn describe(cause: KillCause) -> &'static str {
    match cause {
        KillCause::Protocol => "it broke the protocol",
        KillCause::Shutdown => "the pool shuts down",
        KillCause::Stopped => "it is stopped by a signal and the pool drains",
        KillCause::Deadline => "its task ran longer than it may",
        KillCause::Section => "a section of its task ran longer than it may",
        KillCause::Asked => "its task was killed",
        KillCause::Unwanted => "it is not needed any more",
    }
}
