//! Assigns queued tasks to workers.
//!
//! The oldest task goes to an idle worker. If no worker is idle, the task stays in the queue or is
//! prefetched; see [`prefetch`](crate::prefetch). Prefetched tasks that have not started are taken
//! back for a worker that becomes idle; see [`balance`](crate::balance).

use brigade_base::Monotonic;

use crate::{Action, Outbox, Scheduler, Sending, TaskData, TaskEnd, TaskKey, WorkerState};

impl<T: TaskData> Scheduler<T> {
    /// Assigns queued tasks to workers that have room.
    #[inline]
    pub(crate) fn assign(&mut self, now: Monotonic, outbox: &mut Outbox<T>) {
        if self.tasks.waiting() > self.tasks.queued() {
            self.assign_reserved(now, outbox);
        }
        while let Some(first) = self.tasks.first_queued() {
            if self.is_late(now, first) {
                self.tasks.stop_waiting(first);
                self.end_task(first, TaskEnd::Expired, outbox);
                continue;
            }
            let slot = if self.needs_an_idle_worker(first) {
                self.take_idle_worker()
            } else {
                self.take_worker(now, outbox)
            };
            let Some(slot) = slot else { break };
            let Some(key) = self.tasks.next_queued() else { break };
            self.send_to(now, slot, key, outbox);
        }
    }

    /// Assigns a task without constraints that was just submitted, or lets it wait if no worker has
    /// room or others wait.
    #[inline]
    pub(crate) fn assign_new(&mut self, now: Monotonic, key: TaskKey, outbox: &mut Outbox<T>) {
        if self.tasks.waiting() == 0
            && let Some(slot) = self.take_worker(now, outbox)
        {
            self.send_to(now, slot, key, outbox);
        } else {
            self.tasks.wait_at_the_end(key);
        }
    }

    /// Returns a worker that may be sent one more task.
    #[inline]
    fn take_worker(&mut self, now: Monotonic, outbox: &mut Outbox<T>) -> Option<u32> {
        let slot = self.take_awake_worker(now, outbox).or_else(|| self.take_idle_worker());
        slot.or_else(|| self.find_busy_worker(now, outbox))
    }

    /// Assigns the tasks that only one worker may run.
    fn assign_reserved(&mut self, now: Monotonic, outbox: &mut Outbox<T>) {
        for index in 0..self.workers.len() {
            while let worker = &self.workers[index]
                && worker.may_be_assigned()
                && worker.load() < usize::from(self.settings.credit)
                && let slot = worker.id.slot
                && let Some(key) = self.tasks.next_reserved(slot)
            {
                self.workers.remove_idle(slot);
                self.send_to(now, slot, key, outbox);
            }
        }
    }

    /// Returns a task to the front of the queue. A task whose only worker is gone for good is
    /// cancelled.
    pub(crate) fn return_to_queue(&mut self, key: TaskKey, outbox: &mut Outbox<T>) {
        if self.has_lost_its_slot(key) {
            return self.end_task(key, TaskEnd::Cancelled, outbox);
        }
        self.tasks.wait_at_the_front(key);
        self.arm_waiting(key);
    }

    #[inline]
    fn take_idle_worker(&mut self) -> Option<u32> {
        let slot = self.workers.take_free()?;
        debug_assert_eq!(self.workers[slot as usize].state, WorkerState::Ready);
        Some(slot)
    }

    #[inline]
    fn send_to(&mut self, now: Monotonic, slot: u32, key: TaskKey, outbox: &mut Outbox<T>) {
        self.workers.set_current(slot);
        let unanswered = u16::try_from(self.workers[slot as usize].load()).unwrap_or(u16::MAX);
        let ring_index = self.workers.push(slot, key);
        let worker = &self.workers[slot as usize];
        self.tasks[key].assign(slot, ring_index);
        outbox.push(Action::Send(Sending {
            worker: worker.id,
            ring_index,
            key,
            id: self.tasks.id(key),
            attempt: self.tasks.attempt(key),
            unanswered,
        }));
        if self.tasks.constraints(key).is_some() {
            self.workers[slot as usize].is_reserved = self.must_be_alone(key);
            self.arm_assigned(now, key);
        }
        if self.settings.max_tasks.is_some() {
            self.retire_after_last_task(slot, outbox);
        }
        if self.settings.spare_workers > 0 && !self.workers.is_complete() {
            self.workers.set_changed();
        }
    }

    /// Returns `true` if the worker that runs the task must have no other one.
    #[inline]
    fn must_be_alone(&self, key: TaskKey) -> bool {
        self.tasks.constraints(key).is_some_and(|constraints| constraints.alone)
    }

    /// Returns `true` if the task is not prefetched: it needs resources, which it would hold while
    /// it waits, or a worker that has no other task.
    #[inline]
    fn needs_an_idle_worker(&self, key: TaskKey) -> bool {
        self.tasks.constraints(key).is_some_and(|it| it.alone || it.needs.is_some())
    }

    /// Asks a worker to stop after its last allowed task.
    fn retire_after_last_task(&mut self, slot: u32, outbox: &mut Outbox<T>) {
        let worker = &self.workers[slot as usize];
        let id = worker.id;
        let sent = worker.completed + worker.tasks() as u64;
        if self.allowance(id).is_some_and(|allowance| sent >= allowance) {
            self.leave(slot, WorkerState::Stopping);
            outbox.push(Action::Retired { worker: id, why: "reached `max_tasks_per_worker`" });
            outbox.push(Action::Stop { worker: id });
        }
    }
}
