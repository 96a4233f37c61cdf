//! Checks every invariant of the scheduler.

use brigade_base::Escalation;

use crate::alarms::PoolAlarm;
use crate::entry::EntryState;
use crate::worker::WorkerEntry;
use crate::{Occupant, Phase, Scheduler, TaskData, WorkerState};

impl<T: TaskData> Scheduler<T> {
    /// Panics if an invariant does not hold. Tests call it after every step.
    pub(crate) fn sanity_check(&self) {
        self.each_task_is_in_one_place();
        self.workers_hold_what_their_state_allows();
        self.the_idle_list_is_exact();
        self.every_accepted_task_is_accounted_for();
        self.prefetched_tasks_are_watched();
        self.every_deadline_has_an_alarm();
        if self.lifecycle.has_ended() {
            assert!(self.tasks.is_empty(), "a pool ended with tasks left");
        }
    }

    fn each_task_is_in_one_place(&self) {
        let mut assigned = 0;
        for worker in self.workers.iter() {
            for (ring_index, occupant) in worker.in_flight() {
                if let Occupant::Task(key) = occupant {
                    assigned += 1;
                    let state = EntryState::Assigned { worker: worker.id.slot, ring_index };
                    assert_eq!(self.tasks[key].state(), state, "a task and its worker disagree");
                }
            }
        }
        let places = self.tasks.check_waiting(&self.settings.resources) + assigned;
        assert_eq!(places, self.tasks.len(), "a task is nowhere or in two places");
        self.tasks.check_rare();
        let pending: u64 = self.tasks.keys().map(|key| self.tasks.count(key)).sum();
        assert_eq!(self.pending(), pending, "the number of tasks is wrong");
    }

    fn workers_hold_what_their_state_allows(&self) {
        let busy = self.workers.iter().filter(|worker| worker.load() > 0).count();
        assert_eq!(self.busy_workers(), busy, "the number of busy workers is wrong");
        for worker in self.workers.iter() {
            assert!(worker.load() <= usize::from(self.settings.credit), "credit exceeded");
            assert!(
                worker.pending_kill.is_none(),
                "a worker with a pending kill is neither killed nor spared"
            );
            if let Some(allowance) = self.allowance(worker.id) {
                let sent = worker.completed + worker.tasks() as u64;
                assert!(sent <= allowance, "a worker got more tasks than allowed");
            }
            if matches!(worker.state, WorkerState::Vacant | WorkerState::Starting) {
                assert_eq!(worker.load(), 0, "a worker that does not exist has frames");
            }
        }
    }

    fn the_idle_list_is_exact(&self) {
        let ready = self.workers.iter().filter(|worker| worker.state == WorkerState::Ready).count();
        assert_eq!(self.ready_workers(), ready, "the number of ready workers is wrong");
        let mut listed = self.workers.idle().to_vec();
        listed.sort_unstable();
        let idle: Vec<u32> = self
            .workers
            .iter()
            .filter(|worker| worker.state == WorkerState::Ready && worker.load() == 0)
            .map(|worker| worker.id.slot)
            .collect();
        assert_eq!(listed, idle, "the idle list is wrong");
        let blocked = self.tasks.queued() == 0 || self.workers.free().is_empty();
        assert!(blocked, "a task waits although a worker is idle");
    }

    /// Checks that the rescue is planned while a task is prefetched and another process could be
    /// started.
    fn prefetched_tasks_are_watched(&self) {
        let waits = (0..self.workers.len()).any(|index| self.newest_prefetched(index).is_some());
        if waits && self.has_vacancy() {
            assert!(self.rescue.is_some(), "a task is prefetched, and no rescue is planned");
        }
    }

    fn every_deadline_has_an_alarm(&self) {
        let tasks = self.tasks.keys().filter_map(|key| self.tasks.constraints(key)?.alarm);
        let alarms = |it: &WorkerEntry| [it.age_alarm, it.stop_alarm, it.skip_alarm];
        let workers = self.workers.iter().flat_map(alarms).flatten();
        assert_eq!(tasks.count() + workers.count(), self.alarms.owned(), "an alarm has no owner");
        for worker in self.workers.iter() {
            let ages = worker.state == WorkerState::Ready && self.settings.max_age.is_some();
            assert_eq!(worker.age_alarm.is_some(), ages, "the alarm for a worker's age");
            let skips = matches!(worker.front(), Some(Occupant::Revoked { .. }));
            let alive = matches!(worker.state, WorkerState::Ready | WorkerState::Stopping);
            let watched = skips && alive && !self.settings.trusts_workers;
            assert_eq!(worker.skip_alarm.is_some(), watched, "the alarm for a revoked frame");
            let stopping = worker.state == WorkerState::Stopping;
            assert!(stopping || worker.escalation.is_none(), "an escalation of no stopping worker");
            let due = worker.escalation.as_ref().and_then(Escalation::next_deadline);
            let alarm = worker.stop_alarm.and_then(|alarm| self.alarms.deadline(alarm));
            assert_eq!(alarm, due, "the alarm for the next step of an escalation");
            let idle = stopping && worker.load() == 0;
            assert!(!idle || worker.stop_alarm.is_some(), "a worker is stopped without a bound");
        }
        assert_eq!(self.rescue.is_some(), self.alarms.is_set(PoolAlarm::Rescue));
        let (escalates, inspects) = match self.lifecycle.phase() {
            Phase::Draining { escalate_at, .. } => (escalate_at.is_some(), !self.tasks.is_empty()),
            Phase::Terminating { .. } => (true, false),
            Phase::Running | Phase::Killing | Phase::Ended => (false, false),
        };
        assert_eq!(escalates, self.alarms.is_set(PoolAlarm::Escalate), "the shutdown's next mode");
        assert!(!inspects || self.alarms.is_set(PoolAlarm::Inspect), "nobody looks for stopped");
        let idle = self.next_idle();
        assert!(idle.is_none() || self.alarms.is_set(PoolAlarm::Idle), "an idle worker stays");
        let vacant = self.workers.wanted().any(|it| it.state == WorkerState::Vacant);
        let starts = self.budget.not_before().is_some() && vacant && self.has_demand();
        assert!(!starts || self.alarms.is_set(PoolAlarm::Start), "a postponed start is forgotten");
    }

    fn every_accepted_task_is_accounted_for(&self) {
        let counters = &self.counters;
        let ended = counters.finished
            + counters.cancelled
            + counters.expired
            + counters.failed_by_death
            + counters.killed
            + counters.refused_by_break;
        assert_eq!(
            counters.submitted,
            ended + self.tasks.keys().map(|key| self.tasks.count(key)).sum::<u64>(),
            "a task was lost or duplicated"
        );
    }
}
