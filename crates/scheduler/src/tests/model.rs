//! The promises to each task, checked against the events in the world and not against the
//! scheduler's state.
//!
//! A waiting task is either *fresh* (it was never sent to a worker) or *returned* (it was sent and
//! came back). Fresh tasks start in the order of their rank. Returned tasks are older than all
//! fresh tasks without priority, and go before them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use brigade_base::{Attempt, Monotonic, Needs, TaskId, WorkerId};

use crate::{Constraints, Failure, KillCause, Settings, TaskData, TaskEnd};

/// Head start that one step of priority gives.
const AGING: Duration = Duration::from_secs(10);

pub(super) struct Model {
    quarantine: u32,
    /// Tasks and items that were submitted and have no outcome yet.
    tasks: BTreeMap<u64, Task>,
    counts: Counts,
    /// The amount that there is of each resource.
    resources: Vec<u64>,
    /// Resources that workers still have which were reported dead.
    left: Vec<(WorkerId, Needs)>,
}

/// The number of items of each task, by the id of the first item; 1 for plain tasks. Shared with
/// the scheduler, which divides chunks.
type Counts = Rc<RefCell<BTreeMap<u64, u32>>>;

/// The driver's data for a task.
#[derive(Debug, Clone)]
pub(super) struct Data {
    pub(super) first: u64,
    counts: Counts,
}

impl TaskData for Data {
    fn id(&self) -> TaskId {
        TaskId::new(self.first)
    }
}

impl Data {
    pub(super) fn split_off(&self, at: u32) -> Self {
        let mut counts = self.counts.borrow_mut();
        let count = counts.get_mut(&self.first).expect("a task");
        assert!(at > 0 && at < *count, "{count} items are divided at {at}");
        let rest = *count - at;
        *count = at;
        let first = self.first + u64::from(at);
        assert!(counts.insert(first, rest).is_none(), "task {first} exists");
        Self { first, counts: Rc::clone(&self.counts) }
    }

    pub(super) fn ids(&self) -> Range<u64> {
        self.first..self.first + u64::from(self.counts.borrow()[&self.first])
    }
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
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
    /// `true` for an item of a chunk, and for one that has become a task of its own.
    pub(super) is_item: bool,
    /// `true` if a worker has finished the item.
    finished: bool,
    /// `true` for an item of a cancelled chunk that had started.
    given_up: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Offered,
    Fresh,
    Returned,
    /// Waits for its next attempt.
    Paused {
        until: Monotonic,
    },
    Sent,
}

impl Task {
    /// Returns the number of the attempt that has begun last.
    fn last_attempt(&self) -> Attempt {
        Attempt::new(self.constraints.earlier_attempts + self.begun)
    }

    fn waits(&self) -> bool {
        matches!(self.place, Place::Fresh | Place::Returned)
    }

    /// Returns `true` if the task may have to wait for more than a worker.
    fn waits_for_resources(&self) -> bool {
        self.constraints.needs.is_some() && self.constraints.slot.is_none()
    }

    fn is_paused(&self) -> bool {
        matches!(self.place, Place::Paused { .. })
    }

    /// Returns the rank in nanoseconds. The lowest rank is first.
    fn rank(&self, id: u64) -> (i128, u64) {
        let head_start = i128::from(self.constraints.priority) * AGING.as_nanos().cast_signed();
        (i128::from(self.submitted.as_nanos()) - head_start, id)
    }
}

impl Model {
    pub(super) fn new(settings: &Settings) -> Self {
        let (tasks, counts) = (BTreeMap::new(), Counts::default());
        let resources = settings.resources.iter().map(|it| it.total()).collect();
        Self { quarantine: settings.quarantine, tasks, counts, resources, left: Vec::new() }
    }

    /// Adds a task, or the `items` of a chunk, and returns the driver's data for it.
    pub(super) fn offer(
        &mut self,
        id: u64,
        items: Option<u32>,
        now: Monotonic,
        retries: u32,
        constraints: &Constraints,
    ) -> Data {
        for id in id..id + u64::from(items.unwrap_or(1)) {
            self.offer_one(id, items.is_some(), now, retries, constraints.clone());
        }
        self.counts.borrow_mut().insert(id, items.unwrap_or(1));
        Data { first: id, counts: Rc::clone(&self.counts) }
    }

    /// Returns the ids of the items of a task; a plain task is its only one.
    pub(super) fn ids(&self, first: u64) -> Range<u64> {
        Data { first, counts: Rc::clone(&self.counts) }.ids()
    }

    fn offer_one(
        &mut self,
        id: u64,
        is_item: bool,
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
            is_item,
            finished: false,
            given_up: false,
        };
        self.tasks.insert(id, task);
    }

    pub(super) fn accepted(&mut self, first: u64) {
        for id in self.ids(first) {
            let task = self.tasks.get_mut(&id).expect("a task that was submitted");
            assert_eq!(task.place, Place::Offered, "task {id} was accepted twice");
            task.place = Place::Fresh;
        }
    }

    /// Checks that a task may be sent now.
    pub(super) fn sent(&mut self, first: u64, worker: WorkerId, attempt: Attempt) {
        for id in self.ids(first) {
            self.sent_one(id, worker, attempt);
        }
    }

    fn sent_one(&mut self, id: u64, worker: WorkerId, attempt: Attempt) {
        let task = &self.tasks[&id];
        assert!(task.waits(), "task {id} was sent without having waited: {task:?}");
        assert_eq!(attempt, task.last_attempt().next(), "task {id} has a wrong attempt");
        let slot = task.constraints.slot;
        assert!(slot.is_none_or(|slot| slot == worker.slot), "task {id} was sent to {worker}");
        let fresh = |other: &Task| {
            let waits_for_a_worker = other.constraints.slot == slot && !other.waits_for_resources();
            other.place == Place::Fresh && waits_for_a_worker
        };
        for (earlier, other) in self.tasks.iter().filter(|(_, other)| fresh(other)) {
            // Tasks for one particular worker are sent in order of submission, regardless of
            // priority.
            let before = match slot {
                Some(_) => *earlier < id && task.place == Place::Fresh,
                None => other.rank(*earlier) < task.rank(id),
            };
            assert!(!before, "task {id} was sent before task {earlier}: {task:?}, {other:?}");
        }
        let is_plain = |it: &Task| it.constraints.priority == 0 && !it.waits_for_resources();
        if task.place == Place::Fresh && is_plain(task) {
            let returned = self.tasks.iter().find(|(_, other)| {
                let alike = other.constraints.slot == slot && is_plain(other);
                other.place == Place::Returned && alike
            });
            assert!(returned.is_none(), "task {id} was sent before one that had come back");
        }
        self.tasks.get_mut(&id).expect("seen above").place = Place::Sent;
    }

    /// Records that a sent task waits again.
    pub(super) fn returned(&mut self, first: u64) {
        for id in self.ids(first) {
            let task = self.tasks.get_mut(&id).expect("a task without an outcome");
            assert_eq!(task.place, Place::Sent, "task {id} came back without having been sent");
            assert!(!task.given_up && !task.finished, "item {id} is to run again: {task:?}");
            task.place = Place::Returned;
        }
    }

    /// Records that an attempt at a task ended, and that the next one follows, after a pause unless
    /// the pool cancels what is pending.
    pub(super) fn retried(&mut self, first: u64, now: Monotonic, is_cancelling: bool) {
        let task = &self.tasks[&first];
        let pause = task.constraints.pause(TaskId::new(first), task.last_attempt());
        self.returned(first);
        if !pause.is_zero() && !is_cancelling {
            for id in self.ids(first) {
                let task = self.tasks.get_mut(&id).expect("seen above");
                task.place = Place::Paused { until: now + pause };
            }
        }
    }

    /// Ends the pauses that are over.
    pub(super) fn resume(&mut self, now: Monotonic) {
        for task in self.tasks.values_mut() {
            if matches!(task.place, Place::Paused { until } if until <= now) {
                task.place = Place::Returned;
            }
        }
    }

    /// Returns `true` if a task must run again after its function failed.
    pub(super) fn must_run_again(&self, id: u64, failure: Failure, target: usize) -> bool {
        let Some(task) = self.tasks.get(&id) else { return false };
        let is_wanted = match failure {
            Failure::Panic => task.constraints.retries_panics,
            Failure::Error => task.constraints.retries_errors,
        };
        let has_worker = task.constraints.slot.is_none_or(|slot| (slot as usize) < target);
        is_wanted && has_worker && task.retries_left > 0 && !task.killed && !task.given_up
    }

    pub(super) fn runs_again(&mut self, id: u64) {
        let task = self.tasks.get_mut(&id).expect("a task without an outcome");
        task.retries_left -= 1;
        task.finished = false;
    }

    /// Records that a worker starts an item of a chunk that it runs.
    pub(super) fn began_item(&mut self, id: u64) {
        let task = self.tasks.get_mut(&id).expect("an item without an outcome");
        assert_eq!(task.place, Place::Sent, "item {id} started while it was waiting");
        task.begun += 1;
    }

    pub(super) fn finished_item(&mut self, id: u64) {
        self.tasks.get_mut(&id).expect("an item without an outcome").finished = true;
    }

    /// Records that a caller cancelled or killed a chunk that has started.
    pub(super) fn give_up_items(&mut self, first: u64) {
        for id in self.ids(first) {
            if let Some(task) = self.tasks.get_mut(&id).filter(|task| task.is_item) {
                task.given_up = true;
            }
        }
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
    pub(super) fn required_end(&mut self, id: u64, death: Death) -> Option<TaskEnd> {
        let task = self.tasks.get_mut(&id).expect("a task without an outcome");
        if death.terminating || death.cause == Some(KillCause::Shutdown) {
            return Some(TaskEnd::Killed(KillCause::Shutdown));
        }
        if death.cause == Some(KillCause::Denied) {
            return Some(TaskEnd::Died);
        }
        let by_itself = matches!(death.cause, None | Some(KillCause::Protocol));
        task.deaths += u32::from(by_itself);
        let quarantined = task.deaths >= self.quarantine;
        let retries = if task.killed || task.given_up { 0 } else { task.retries_left };
        let asked = death.cause == Some(KillCause::Asked);
        let stopped = death.cause == Some(KillCause::Stopped);
        if retries > 0 && !quarantined && !asked && !stopped && !death.broken {
            task.retries_left -= 1;
            let gone = task.constraints.slot.is_some_and(|slot| slot as usize >= death.target);
            return gone.then_some(TaskEnd::Cancelled);
        }
        Some(match death.cause {
            _ if by_itself && quarantined && retries > 0 => TaskEnd::Quarantined,
            None => TaskEnd::Died,
            Some(cause) => TaskEnd::Killed(cause),
        })
    }

    /// Records what workers still have whose tasks have left them.
    pub(super) fn set_left(&mut self, left: Vec<(WorkerId, Needs)>) {
        self.left = left;
    }

    /// Records that its worker overwrote its state word, so that it counts as started.
    pub(super) fn presume_started(&mut self, id: u64) {
        self.tasks.get_mut(&id).expect("a task without an outcome").begun += 1;
    }

    /// Checks that a task may end this way.
    pub(super) fn ended(&mut self, id: u64, end: TaskEnd, now: Monotonic) {
        let task = self.tasks.remove(&id).unwrap_or_else(|| panic!("task {id} ended twice"));
        match end {
            TaskEnd::Reported | TaskEnd::Finished => {
                assert_eq!(task.place, Place::Sent, "task {id} was never sent");
                assert_eq!(task.finished, task.is_item, "item {id} ended as {end:?}");
            }
            TaskEnd::Expired => {
                let limit = task
                    .constraints
                    .queue_limit
                    .expect("only a task with a queue deadline expires");
                let waited = now.saturating_since(task.submitted);
                assert!(waited >= limit, "task {id} expired after {waited:?}, it has {limit:?}");
                assert_eq!(task.begun, 0, "task {id} expired after it had started");
            }
            TaskEnd::Died | TaskEnd::Quarantined | TaskEnd::Killed(_) => {
                assert!(task.begun > 0, "task {id} ended as {end:?} without having started");
                assert!(!task.finished, "item {id} ended as {end:?} although it has finished");
            }
            TaskEnd::Cancelled | TaskEnd::Broken | TaskEnd::Closed => {}
        }
        let refused = task.place == Place::Offered;
        let slot_is_gone = end == TaskEnd::Cancelled && task.constraints.slot.is_some();
        assert!(
            slot_is_gone || (end == TaskEnd::Closed) <= refused,
            "task {id} ended as {end:?} from {:?}",
            task.place
        );
    }

    pub(super) fn is_live(&self, id: u64) -> bool {
        self.tasks.contains_key(&id)
    }

    pub(super) fn is_item(&self, id: u64) -> bool {
        self.tasks.get(&id).is_some_and(|task| task.is_item)
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Returns the longest run time of a task. Items that share it have it for each of them.
    pub(super) fn hard_limit(&self, id: u64) -> Option<Duration> {
        let constraints = &self.tasks.get(&id)?.constraints;
        let count = u32::try_from(self.ids(id).count()).expect("few");
        let times = if constraints.items_share_limit { count } else { 1 };
        Some(constraints.hard_limit? * times)
    }

    /// Returns `true` if any worker may run the task.
    pub(super) fn is_movable(&self, id: u64) -> bool {
        self.tasks.get(&id).is_some_and(|task| task.constraints.slot.is_none())
    }

    /// Returns the number of tasks that wait for any worker, or for the one in `slot`. A chunk is
    /// one task.
    pub(super) fn waiting(&self, slot: Option<u32>) -> usize {
        let all = self.waiting_tasks().filter(|(_, task)| task.constraints.slot == slot).count();
        if slot.is_none() { all - self.held_up() } else { all }
    }

    /// Returns the number of tasks that wait until others give resources back: those for which
    /// there is too little after those before them got theirs, and those behind them that need the
    /// same.
    pub(super) fn held_up(&self) -> usize {
        let needs = |task: &Task| task.constraints.needs.clone().expect("it has needs");
        let mut left = self.resources.clone();
        let mut take = |needs: &Needs| {
            let fits = needs.iter().all(|need| need.amount <= left[usize::from(need.resource)]);
            for need in needs.iter() {
                let left = &mut left[usize::from(need.resource)];
                *left = left.saturating_sub(need.amount);
            }
            fits
        };
        let sent = self.firsts().filter(|(_, it)| it.place == Place::Sent);
        for (_, needs) in &self.left {
            assert!(take(needs), "more is taken than there is");
        }
        for (_, task) in sent.filter(|(_, task)| task.waits_for_resources()) {
            assert!(take(&needs(task)), "more is taken than there is");
        }
        let mut waiting: Vec<_> =
            self.waiting_tasks().filter(|(_, task)| task.waits_for_resources()).collect();
        waiting.sort_by_key(|(id, task)| task.rank(**id));
        let mut short = Vec::new();
        let mut held_up = 0;
        for (_, task) in waiting {
            let needs = needs(task);
            if short.contains(&needs) || !take(&needs) {
                short.push(needs);
                held_up += 1;
            }
        }
        held_up
    }

    pub(super) fn all_waiting(&self) -> usize {
        self.waiting_tasks().count()
    }

    fn waiting_tasks(&self) -> impl Iterator<Item = (&u64, &Task)> {
        self.firsts().filter(|(_, task)| task.waits())
    }

    /// Returns the tasks; a chunk is its first item.
    fn firsts(&self) -> impl Iterator<Item = (&u64, &Task)> {
        self.tasks.iter().filter(|(id, _)| self.counts.borrow().contains_key(id))
    }

    /// Returns all tasks. A chunk is one task.
    fn whole_tasks(&self) -> impl Iterator<Item = &Task> {
        self.firsts().map(|(_, task)| task)
    }

    /// Returns the number of tasks that wait, for a worker or for their next attempt. A chunk is
    /// one task.
    pub(super) fn unassigned(&self) -> usize {
        self.all_waiting() + self.whole_tasks().filter(|task| task.is_paused()).count()
    }

    /// Returns the number of tasks and items that wait, for a worker or for their next attempt.
    pub(super) fn waiting_items(&self) -> usize {
        self.tasks.values().filter(|task| task.waits() || task.is_paused()).count()
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
