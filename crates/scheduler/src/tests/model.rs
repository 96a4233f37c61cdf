//! The promises to each task, checked against the events in the world and not against the
//! scheduler's state.
//!
//! A waiting task is either *fresh* (it was never sent to a worker) or *returned* (it was sent and
//! came back). Fresh tasks start in the order of their rank. Returned tasks are older than all
//! fresh tasks without priority, and go before them.

use std::collections::BTreeMap;
use std::time::Duration;

use brigade_ids::{Attempt, WorkerId};
use brigade_time::Monotonic;

use crate::{Constraints, End, KillCause, Settings};

/// Head start that one step of priority gives.
const AGING: Duration = Duration::from_secs(10);

pub(super) struct Model {
    quarantine: u32,
    /// Tasks that were submitted and have no outcome yet.
    tasks: BTreeMap<u64, Task>,
}

#[derive(Debug)]
pub(super) struct Task {
    submitted: Monotonic,
    constraints: Constraints,
    retries_left: u32,
    /// Number of workers that died by themselves while running it.
    deaths: u32,
    begun: u32,
    place: Place,
    /// `true` if a caller killed it: it may end in any way, but never starts again.
    killed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Offered,
    Fresh,
    Returned,
    Sent,
}

impl Task {
    fn waits(&self) -> bool {
        matches!(self.place, Place::Fresh | Place::Returned)
    }

    /// Returns the rank in nanoseconds. The lowest rank is first.
    fn rank(&self, id: u64) -> (i128, u64) {
        let head_start = i128::from(self.constraints.priority) * AGING.as_nanos().cast_signed();
        (i128::from(self.submitted.as_nanos()) - head_start, id)
    }
}

impl Model {
    pub(super) fn new(settings: &Settings) -> Self {
        Self { quarantine: settings.quarantine, tasks: BTreeMap::new() }
    }

    pub(super) fn offer(
        &mut self,
        id: u64,
        now: Monotonic,
        retries: u32,
        constraints: Constraints,
    ) {
        let (submitted, place) = (now, Place::Offered);
        let task = Task {
            submitted,
            constraints,
            retries_left: retries,
            deaths: 0,
            begun: 0,
            place,
            killed: false,
        };
        self.tasks.insert(id, task);
    }

    pub(super) fn accepted(&mut self, id: u64) {
        let task = self.tasks.get_mut(&id).expect("a task that was submitted");
        assert_eq!(task.place, Place::Offered, "task {id} was accepted twice");
        task.place = Place::Fresh;
    }

    /// Checks that a task may be sent now.
    pub(super) fn sent(&mut self, id: u64, worker: WorkerId, attempt: Attempt) {
        let task = &self.tasks[&id];
        assert!(task.waits(), "task {id} was sent without having waited: {task:?}");
        assert_eq!(attempt.get(), task.begun + 1, "task {id} has a wrong attempt");
        let slot = task.constraints.slot;
        assert!(slot.is_none_or(|slot| slot == worker.slot), "task {id} was sent to {worker}");
        let fresh = |other: &Task| other.place == Place::Fresh && other.constraints.slot == slot;
        for (earlier, other) in self.tasks.iter().filter(|(_, other)| fresh(other)) {
            // Tasks for one particular worker are sent in order of submission, regardless of
            // priority.
            let before = match slot {
                Some(_) => *earlier < id && task.place == Place::Fresh,
                None => other.rank(*earlier) < task.rank(id),
            };
            assert!(!before, "task {id} was sent before task {earlier}: {task:?}, {other:?}");
        }
        if task.place == Place::Fresh && task.constraints.priority == 0 {
            let returned = self.tasks.iter().find(|(_, other)| {
                let alike = other.constraints.slot == slot && other.constraints.priority == 0;
                other.place == Place::Returned && alike
            });
            assert!(returned.is_none(), "task {id} was sent before one that had come back");
        }
        self.tasks.get_mut(&id).expect("seen above").place = Place::Sent;
    }

    /// Records that a sent task waits again.
    pub(super) fn returned(&mut self, id: u64) {
        let task = self.tasks.get_mut(&id).expect("a task without an outcome");
        assert_eq!(task.place, Place::Sent, "task {id} came back without having been sent");
        task.place = Place::Returned;
    }

    pub(super) fn began(&mut self, id: u64, slot: u32) {
        let task = self.tasks.get_mut(&id);
        let task = task.unwrap_or_else(|| panic!("task {id} started after its end"));
        assert_eq!(task.place, Place::Sent, "task {id} started while it was waiting");
        assert!(!task.killed, "task {id} started after it was killed");
        assert!(
            task.constraints.slot.is_none_or(|wanted| wanted == slot),
            "it was started by another worker"
        );
        task.begun += 1;
    }

    pub(super) fn kill(&mut self, id: u64) {
        if let Some(task) = self.tasks.get_mut(&id) {
            task.killed = true;
        }
    }

    /// Returns the required end of a task whose worker dies, or `None` if it must run again.
    pub(super) fn required_end(&mut self, id: u64, death: Death) -> Option<End> {
        let task = self.tasks.get_mut(&id).expect("a task without an outcome");
        if death.terminating || death.cause == Some(KillCause::Shutdown) {
            return Some(End::Killed(KillCause::Shutdown));
        }
        let by_itself = matches!(death.cause, None | Some(KillCause::Protocol));
        task.deaths += u32::from(by_itself);
        let quarantined = task.deaths >= self.quarantine;
        let retries = if task.killed { 0 } else { task.retries_left };
        let asked = death.cause == Some(KillCause::Asked);
        let stopped = death.cause == Some(KillCause::Stopped);
        if retries > 0 && !quarantined && !asked && !stopped && !death.broken {
            task.retries_left -= 1;
            let gone = task.constraints.slot.is_some_and(|slot| slot as usize >= death.target);
            return gone.then_some(End::Cancelled);
        }
        Some(match death.cause {
            _ if by_itself && quarantined && retries > 0 => End::Quarantined,
            None => End::Died,
            Some(cause) => End::Killed(cause),
        })
    }

    /// Records that its worker overwrote its state word, so that it counts as started.
    pub(super) fn presume_started(&mut self, id: u64) {
        self.tasks.get_mut(&id).expect("a task without an outcome").begun += 1;
    }

    /// Checks that a task may end this way.
    pub(super) fn ended(&mut self, id: u64, end: End, now: Monotonic) {
        let task = self.tasks.remove(&id).unwrap_or_else(|| panic!("task {id} ended twice"));
        match end {
            End::Reported => assert_eq!(task.place, Place::Sent, "task {id} was never sent"),
            End::Expired => {
                let limit = task
                    .constraints
                    .queue_limit
                    .expect("only a task with a queue deadline expires");
                let waited = now.saturating_since(task.submitted);
                assert!(waited >= limit, "task {id} expired after {waited:?}, it has {limit:?}");
                assert_eq!(task.begun, 0, "task {id} expired after it had started");
            }
            End::Died | End::Quarantined | End::Killed(_) => {
                assert!(task.begun > 0, "task {id} ended as {end:?} without having started");
            }
            End::Cancelled | End::Broken | End::Closed => {}
        }
        let refused = task.place == Place::Offered;
        let slot_is_gone = end == End::Cancelled && task.constraints.slot.is_some();
        assert!(
            slot_is_gone || (end == End::Closed) <= refused,
            "task {id} ended as {end:?} from {:?}",
            task.place
        );
    }

    pub(super) fn is_live(&self, id: u64) -> bool {
        self.tasks.contains_key(&id)
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(super) fn hard_limit(&self, id: u64) -> Option<Duration> {
        self.tasks.get(&id)?.constraints.hard_limit
    }

    /// Returns `true` if any worker may run the task.
    pub(super) fn is_movable(&self, id: u64) -> bool {
        self.tasks.get(&id).is_some_and(|task| task.constraints.slot.is_none())
    }

    /// Returns the number of tasks that wait for any worker, or for the one in `slot`.
    pub(super) fn waiting(&self, slot: Option<u32>) -> usize {
        self.tasks.values().filter(|task| task.waits() && task.constraints.slot == slot).count()
    }

    pub(super) fn all_waiting(&self) -> usize {
        self.tasks.values().filter(|task| task.waits()).count()
    }

    /// Returns the tasks whose queue deadlines have expired.
    pub(super) fn overdue(&self, now: Monotonic) -> Vec<u64> {
        let overdue = |task: &Task| {
            let limit = task.constraints.queue_limit.filter(|_| task.begun == 0);
            limit.is_some_and(|limit| task.submitted.saturating_add(limit) <= now)
        };
        self.tasks.iter().filter(|(_, task)| overdue(task)).map(|(id, _)| *id).collect()
    }
}

/// The circumstances of a worker's death.
#[derive(Debug, Clone, Copy)]
pub(super) struct Death {
    /// The reason why the pool killed the worker, if it did.
    pub(super) cause: Option<KillCause>,
    /// `true` if the pool is ending running tasks.
    pub(super) terminating: bool,
    pub(super) broken: bool,
    pub(super) target: usize,
}
