//! Every invariant of the machine, checked at once.

use super::{Machine, Occupant, Phase, WorkerState};
use crate::machine::task::Place;

impl<T> Machine<T> {
    /// Panics when an invariant does not hold; tests call it after every step.
    #[cfg_attr(not(test), expect(dead_code, reason = "the checks belong to tests"))]
    pub(crate) fn sanity_check(&self) {
        self.each_task_is_in_one_place();
        self.workers_hold_what_their_state_allows();
        self.the_idle_list_is_exact();
        self.every_accepted_task_is_accounted_for();
        self.what_waits_behind_another_is_watched();
        if self.phase == Phase::Ended {
            assert!(self.tasks.is_empty(), "a pool ended with tasks left");
        }
    }

    fn each_task_is_in_one_place(&self) {
        let queued: Vec<_> = self.queue.iter(&self.tasks).collect();
        assert_eq!(queued.len(), self.queue.len(), "the queue's length is wrong");
        let mut assigned = 0;
        for worker in &self.workers {
            for (link_slot, occupant) in worker.in_flight() {
                if let Occupant::Task(key) = occupant {
                    assigned += 1;
                    let place = Place::Assigned { worker: worker.id.slot, link_slot };
                    assert_eq!(
                        self.tasks[key.index()].place,
                        place,
                        "a task and its worker disagree"
                    );
                }
            }
        }
        for key in &queued {
            assert_eq!(self.tasks[key.index()].place, Place::Queued);
        }
        let reserved: Vec<_> = self
            .workers
            .iter()
            .flat_map(|worker| worker.reserved.iter().map(|key| (Some(worker.id.slot), *key)))
            .collect();
        for (slot, key) in &reserved {
            let task = &self.tasks[key.index()];
            assert_eq!((task.place, task.slot()), (Place::Reserved, *slot));
        }
        assert_eq!(reserved.len(), self.reserved, "the count of reserved tasks is wrong");
        let places = queued.len() + reserved.len() + assigned;
        assert_eq!(places, self.tasks.len(), "a task is in no place or in two");
        let with_timer = self.tasks.iter().filter_map(|(_, task)| task.terms.as_ref()?.timer);
        assert_eq!(with_timer.count(), self.timers.len(), "a timer belongs to no task");
    }

    fn workers_hold_what_their_state_allows(&self) {
        for worker in &self.workers {
            assert!(worker.load() <= usize::from(self.settings.credit), "credit exceeded");
            assert!(worker.condemned.is_none(), "a worker is neither killed nor spared");
            if let Some(allowance) = self.allowance(worker.id) {
                let sent = worker.completed + worker.tasks() as u64;
                assert!(sent <= allowance, "a worker got more tasks than it may do");
            }
            if matches!(worker.state, WorkerState::Vacant | WorkerState::Starting) {
                assert_eq!(worker.load(), 0, "frames under way to a worker that is not there");
            }
        }
    }

    fn the_idle_list_is_exact(&self) {
        if self.complete {
            assert_eq!(self.ready_workers(), self.target, "a worker is missing");
        }
        let mut listed = self.idle.clone();
        listed.sort_unstable();
        let idle: Vec<u32> = self
            .workers
            .iter()
            .filter(|worker| worker.state == WorkerState::Ready && worker.load() == 0)
            .map(|worker| worker.id.slot)
            .collect();
        assert_eq!(listed, idle, "the idle list is wrong");
        let blocked = self.queue.is_empty() || self.idle.is_empty();
        assert!(blocked, "a task waits although a worker is idle");
    }

    /// A process that could be started is not forgotten for tasks that were sent.
    fn what_waits_behind_another_is_watched(&self) {
        let waits = (0..self.workers.len()).any(|index| self.newest_behind(index).is_some());
        if waits && self.has_vacancy() {
            assert!(
                self.rescue.is_some(),
                "a task waits behind another, and nobody looks after it"
            );
        }
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
            ended + self.tasks.len() as u64,
            "a task was lost or doubled"
        );
    }
}
