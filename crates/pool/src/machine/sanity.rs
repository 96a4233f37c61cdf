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
        assert_eq!(queued.len() + assigned, self.tasks.len(), "a task is in no place or in two");
    }

    fn workers_hold_what_their_state_allows(&self) {
        for worker in &self.workers {
            assert!(worker.load() <= usize::from(self.settings.credit), "credit exceeded");
            if matches!(worker.state, WorkerState::Vacant | WorkerState::Starting) {
                assert_eq!(worker.load(), 0, "frames under way to a worker that is not there");
            }
        }
    }

    fn the_idle_list_is_exact(&self) {
        if self.complete {
            assert_eq!(self.ready_workers(), self.workers.len(), "a worker is missing");
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

    fn every_accepted_task_is_accounted_for(&self) {
        let counters = &self.counters;
        let ended = counters.finished
            + counters.cancelled
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
