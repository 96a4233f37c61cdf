//! Tasks that were sent behind others and are taken back: for a worker that is idle, or for one that could be started.

use std::time::Duration;

use super::assign::SHORT;
use super::{Action, Machine, Now, Occupant, Outbox, RevokeWhy, TaskKey, TaskRef};

/// How often workers are checked for progress while tasks wait behind others.
const RESCUE_INTERVAL: Duration = Duration::from_millis(1);

/// A worker gives back what is beyond its depth once it has this many times as much: the depth varies a little all the time.
const FAR_BEYOND: usize = 2;

/// The next check for progress.
#[derive(Debug)]
pub(super) struct RescuePlan {
    pub(super) due: Now,
    /// More tasks were sent behind others since it was planned.
    packed: bool,
    /// The first check only notes how far the workers are: it may come at once, as submitters have a clock that is behind.
    first: bool,
}

impl<T> Machine<T> {
    /// Tasks were sent behind others. A check that is due is made by the caller, so that the driver's clock need not wake up.
    pub(super) fn plan_rescue(&mut self, now: Now, outbox: &mut Outbox<T>) {
        match &mut self.rescue {
            None => self.rescue_later(now, true, outbox),
            Some(plan) => {
                plan.packed = true;
                if plan.due <= now {
                    self.rescue(now, outbox);
                    self.armed = self.next_deadline();
                }
            }
        }
    }

    fn rescue_later(&mut self, now: Now, first: bool, outbox: &mut Outbox<T>) {
        let due = now.saturating_add(RESCUE_INTERVAL);
        self.rescue = Some(RescuePlan { due, packed: false, first });
        self.rearm_for(due, outbox);
    }

    /// Takes back what waits behind a task that turned out not to be short, if another worker is idle or can be started.
    pub(super) fn rescue(&mut self, now: Now, outbox: &mut Outbox<T>) {
        let Some(plan) = self.rescue.take_if(|plan| plan.due <= now) else { return };
        let wanted = !self.idle.is_empty() || self.has_vacancy();
        // Who has packed on, packs on, most likely: to plan it anew then would be to wake the driver each time.
        let mut goes_on = plan.packed || plan.first;
        for index in 0..self.workers.len() {
            let worker = &mut self.workers[index];
            let progress = worker.completed != worker.completed_at_rescue;
            worker.completed_at_rescue = worker.completed;
            if plan.first {
                continue;
            }
            worker.stalled = !progress && worker.is_at_work();
            if wanted && self.newest_behind(index).is_some() {
                goes_on = true;
                self.take_back(index, outbox);
            }
        }
        if goes_on {
            self.rescue_later(now, false, outbox);
        }
    }

    /// Takes back what a worker should not have been sent, as far as is known now.
    fn take_back(&mut self, index: usize, outbox: &mut Outbox<T>) {
        let (depth, tasks) = (self.depth(), self.workers[index].tasks());
        let count = match self.idle.last() {
            // It may not even have begun the first one, which an idle worker begins at once.
            Some(idle) if self.workers[index].stalled => {
                if self.current == index {
                    self.current = *idle as usize;
                }
                tasks
            }
            None if self.workers[index].stalled => tasks - 1,
            _ if tasks > FAR_BEYOND.saturating_mul(depth) => tasks - depth,
            _ => 0,
        };
        let worker = &self.workers[index];
        let newest = worker.in_flight().rev().filter_map(|(link_slot, occupant)| match occupant {
            Occupant::Task(key) => Some((link_slot, key)),
            Occupant::Revoked { .. } => None,
        });
        // From the newest to the oldest, so that the queue's front keeps the order of submission.
        for (link_slot, key) in newest.take(count).filter(|(_, key)| self.is_movable(*key)) {
            let task = TaskRef { key, id: self.tasks[key.index()].id };
            outbox.push(Action::Revoke {
                worker: worker.id,
                link_slot,
                task,
                why: RevokeWhy::Steal,
            });
        }
    }

    /// After all answers that are there were handled.
    pub(super) fn balance(&mut self, now: Now, outbox: &mut Outbox<T>) {
        if self.complete && self.idle.is_empty() {
            return;
        }
        let stolen = !self.idle.is_empty() && self.steal_for_the_idle(outbox);
        let waits = |index| self.newest_behind(index).is_some();
        if !stolen && (0..self.workers.len()).any(waits) {
            self.plan_rescue(now, outbox);
        }
    }

    /// Asks back the newest task of the most loaded worker for a worker that is idle. The next one follows when that
    /// task was answered. Short tasks are left where they are, unless their worker is known to make no progress.
    fn steal_for_the_idle(&self, outbox: &mut Outbox<T>) -> bool {
        let short = self.usual_run <= SHORT;
        let victims = (0..self.workers.len()).filter_map(|index| {
            if short && !self.workers[index].stalled {
                return None;
            }
            let (link_slot, key) = self.newest_behind(index)?;
            Some((&self.workers[index], link_slot, key))
        });
        let victim = victims.max_by_key(|(victim, ..)| victim.tasks());
        if let Some((victim, link_slot, key)) = victim {
            let task = TaskRef { key, id: self.tasks[key.index()].id };
            let (worker, why) = (victim.id, RevokeWhy::Steal);
            outbox.push(Action::Revoke { worker, link_slot, task, why });
        }
        victim.is_some()
    }

    /// The newest of the tasks that wait in a worker behind another one, and that another worker may run.
    pub(super) fn newest_behind(&self, index: usize) -> Option<(u16, TaskKey)> {
        let worker = &self.workers[index];
        if !worker.gives_tasks() || worker.tasks() < 2 {
            return None;
        }
        let tasks = worker.in_flight().rev().filter_map(|(link_slot, occupant)| match occupant {
            Occupant::Task(key) => Some((link_slot, key)),
            Occupant::Revoked { .. } => None,
        });
        tasks.take(worker.tasks() - 1).find(|(_, key)| self.is_movable(*key))
    }

    /// Whether another worker may run the task as well.
    pub(super) fn is_movable(&self, key: TaskKey) -> bool {
        self.tasks[key.index()].slot().is_none()
    }
}
