//! What each task was promised: judged from what the world sees, not from what the machine holds.
//!
//! Tasks that wait are either *fresh* (they were never sent to a worker) or *returned* (they were, and came back). Fresh
//! ones begin in the order of their rank; returned ones are older than all fresh ones of no priority, and go before them.

use std::collections::BTreeMap;
use std::time::Duration;

use brigade_wire::{Attempt, WorkerId};

use crate::machine::{End, KillCause, Now, Settings, Terms};

/// What one step of priority is worth.
const AGING: Duration = Duration::from_secs(10);

pub(super) struct Model {
    quarantine: u32,
    /// Tasks that were submitted and have no outcome.
    tasks: BTreeMap<u64, Task>,
}

#[derive(Debug)]
pub(super) struct Task {
    submitted: Now,
    terms: Terms,
    retries_left: u32,
    /// Workers that died under it by themselves.
    deaths: u32,
    begun: u32,
    place: Place,
    /// A caller has killed it: it may end in any way, and never begins again.
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

    /// The lowest is first; in nanoseconds.
    fn rank(&self, id: u64) -> (i128, u64) {
        let nanos = |time: Duration| i128::try_from(time.as_nanos()).expect("a short time");
        (nanos(self.submitted) - i128::from(self.terms.priority) * nanos(AGING), id)
    }
}

impl Model {
    pub(super) fn new(settings: &Settings) -> Self {
        Self { quarantine: settings.quarantine, tasks: BTreeMap::new() }
    }

    pub(super) fn offer(&mut self, id: u64, now: Now, retries: u32, terms: Terms) {
        let (submitted, place) = (now, Place::Offered);
        let task = Task {
            submitted,
            terms,
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

    /// The machine has handed a task out.
    pub(super) fn sent(&mut self, id: u64, worker: WorkerId, attempt: Attempt) {
        let task = &self.tasks[&id];
        assert!(task.waits(), "task {id} was sent and did not wait: {task:?}");
        assert_eq!(attempt.get(), task.begun + 1, "task {id} has a wrong attempt");
        let slot = task.terms.slot;
        assert!(slot.is_none_or(|slot| slot == worker.slot), "task {id} was sent to {worker}");
        let fresh = |other: &Task| other.place == Place::Fresh && other.terms.slot == slot;
        for (earlier, other) in self.tasks.iter().filter(|(_, other)| fresh(other)) {
            // Tasks for one worker go there in the order of submission, whatever their priority.
            let before = match slot {
                Some(_) => *earlier < id && task.place == Place::Fresh,
                None => other.rank(*earlier) < task.rank(id),
            };
            assert!(!before, "task {id} was sent before task {earlier}: {task:?}, {other:?}");
        }
        if task.place == Place::Fresh && task.terms.priority == 0 {
            let returned = self.tasks.iter().find(|(_, other)| {
                let alike = other.terms.slot == slot && other.terms.priority == 0;
                other.place == Place::Returned && alike
            });
            assert!(returned.is_none(), "task {id} was sent before one that had come back");
        }
        self.tasks.get_mut(&id).expect("seen above").place = Place::Sent;
    }

    /// A task that was sent waits again.
    pub(super) fn returned(&mut self, id: u64) {
        let task = self.tasks.get_mut(&id).expect("a task without an outcome");
        assert_eq!(task.place, Place::Sent, "task {id} came back and was nowhere");
        task.place = Place::Returned;
    }

    pub(super) fn began(&mut self, id: u64, slot: u32) {
        let task = self.tasks.get_mut(&id);
        let task = task.unwrap_or_else(|| panic!("task {id} began after its end"));
        assert_eq!(task.place, Place::Sent, "task {id} began while it waits");
        assert!(!task.killed, "task {id} began after it was killed");
        assert!(task.terms.slot.is_none_or(|wanted| wanted == slot), "run by another worker");
        task.begun += 1;
    }

    pub(super) fn kill(&mut self, id: u64) {
        if let Some(task) = self.tasks.get_mut(&id) {
            task.killed = true;
        }
    }

    /// What must come of a task under which a worker dies; `None` when it is to run again.
    pub(super) fn fate(&mut self, id: u64, death: Death) -> Option<End> {
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
            let gone = task.terms.slot.is_some_and(|slot| slot as usize >= death.target);
            return gone.then_some(End::Cancelled);
        }
        Some(match death.cause {
            _ if by_itself && quarantined && retries > 0 => End::Quarantined,
            None => End::Died,
            Some(cause) => End::Killed(cause),
        })
    }

    /// Its worker wrote over the word that says whether it has begun.
    pub(super) fn presumed_begun(&mut self, id: u64) {
        self.tasks.get_mut(&id).expect("a task without an outcome").begun += 1;
    }

    /// The task has its outcome.
    pub(super) fn ended(&mut self, id: u64, end: End, now: Now) {
        let task = self.tasks.remove(&id).unwrap_or_else(|| panic!("task {id} ended twice"));
        match end {
            End::Reported => assert_eq!(task.place, Place::Sent, "task {id} was never sent"),
            End::Expired => {
                let limit = task.terms.queue_limit.expect("only what has a limit expires");
                let waited = now.saturating_sub(task.submitted);
                assert!(waited >= limit, "task {id} expired after {waited:?}, it has {limit:?}");
                assert_eq!(task.begun, 0, "task {id} has begun and does not wait any more");
            }
            End::Died | End::Quarantined | End::Killed(_) => {
                assert!(task.begun > 0, "task {id} ended as {end:?} and never began");
            }
            End::Cancelled | End::Broken | End::Closed => {}
        }
        let refused = task.place == Place::Offered;
        let slot_is_gone = end == End::Cancelled && task.terms.slot.is_some();
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

    pub(super) fn run_limit(&self, id: u64) -> Option<Duration> {
        self.tasks.get(&id)?.terms.run_limit
    }

    /// Whether any worker may run the task.
    pub(super) fn is_movable(&self, id: u64) -> bool {
        self.tasks.get(&id).is_some_and(|task| task.terms.slot.is_none())
    }

    /// Tasks that wait for any worker, or for the one in `slot`.
    pub(super) fn waiting(&self, slot: Option<u32>) -> usize {
        self.tasks.values().filter(|task| task.waits() && task.terms.slot == slot).count()
    }

    pub(super) fn all_waiting(&self) -> usize {
        self.tasks.values().filter(|task| task.waits()).count()
    }

    /// Tasks that should have begun by now, or have been given up.
    pub(super) fn overdue(&self, now: Now) -> Vec<u64> {
        let overdue = |task: &Task| {
            let limit = task.terms.queue_limit.filter(|_| task.begun == 0);
            limit.is_some_and(|limit| task.submitted + limit <= now)
        };
        self.tasks.iter().filter(|(_, task)| overdue(task)).map(|(id, _)| *id).collect()
    }
}

/// The circumstances of a worker's death.
#[derive(Debug, Clone, Copy)]
pub(super) struct Death {
    /// Why the pool killed it, if it did.
    pub(super) cause: Option<KillCause>,
    /// The pool ends what runs.
    pub(super) terminating: bool,
    pub(super) broken: bool,
    pub(super) target: usize,
}
