//! Reports of tasks that are too old.

use std::time::Duration;

use brigade_base::{Attempt, Monotonic, TaskId, WorkerId};

use super::world::settings;
use crate::{Action, Event, Outbox, Scheduler, Settings, Submission};

const LIMIT: Duration = Duration::from_secs(8);
const ALMOST: Duration = Duration::from_secs(7);
const WORKER: WorkerId = WorkerId { slot: 0, generation: 1 };

/// A pool with one worker, which is ready.
struct Pool {
    scheduler: Scheduler<TaskId>,
    now: Monotonic,
    submitted: u64,
    /// Number of tasks that were too many for one look.
    more: usize,
}

impl Pool {
    fn new() -> Self {
        let settings = Settings { slow_after: Some(LIMIT), ..settings(1) };
        let scheduler = Scheduler::new(settings, |id, _| *id);
        let now = Monotonic::ZERO.saturating_add(Duration::from_secs(100));
        let mut pool = Self { scheduler, now, submitted: 0, more: 0 };
        pool.event(Event::WarmUp);
        pool.event(Event::Ready { worker: WORKER });
        pool
    }

    /// Returns the reported tasks with their ages.
    fn event(&mut self, event: Event<TaskId>) -> Vec<(u64, Duration)> {
        let mut outbox = Outbox::default();
        self.scheduler.handle(self.now, event, &mut outbox);
        let mut slow = Vec::new();
        while let Some(action) = outbox.pop() {
            match action {
                Action::Slow { task, elapsed } => slow.push((task.id.get(), elapsed)),
                Action::MoreSlow { tasks } => self.more += tasks,
                _ => {}
            }
        }
        slow
    }

    fn submit(&mut self) {
        self.submitted += 1;
        let id = TaskId::new(self.submitted);
        let submission = Submission { task: id, items: None, retries: 0, constraints: None };
        assert_eq!(self.event(Event::Submit(submission)), []);
    }

    fn finish(&mut self, task: u64) {
        let (task, attempt) = (TaskId::new(task), Attempt::first());
        let run_time = LIMIT;
        let (worker, worn, failure) = (WORKER, false, None);
        self.event(Event::Finished { worker, task, attempt, run_time, worn, failure });
    }

    /// Lets the time pass, with a tick for each deadline. Returns the reported tasks.
    fn wait(&mut self, time: Duration) -> Vec<(u64, Duration)> {
        let end = self.now.saturating_add(time);
        let mut slow = Vec::new();
        while let Some(due) = self.scheduler.next_deadline().filter(|due| *due <= end) {
            self.now = due;
            slow.extend(self.event(Event::Tick));
        }
        self.now = end;
        slow
    }
}

#[test]
fn a_task_is_reported_each_time_that_it_has_aged_by_the_limit() {
    let mut pool = Pool::new();
    pool.submit();
    pool.submit();
    for round in 1..=3 {
        assert_eq!(pool.wait(ALMOST), [], "round {round}: too early");
        assert_eq!(pool.wait(Duration::from_secs(1)), [(1, LIMIT * round), (2, LIMIT * round)]);
    }
    pool.finish(1);
    pool.finish(2);
    assert_eq!(pool.wait(LIMIT), []);
    assert_eq!(pool.scheduler.next_deadline(), None, "an idle pool does not wake up");
}

#[test]
fn tasks_that_come_one_after_the_other_share_looks() {
    let mut pool = Pool::new();
    for _ in 0..100 {
        pool.submit();
        // The last wait ends with the limit of the first task.
        if pool.submitted < 100 {
            assert_eq!(pool.wait(LIMIT / 100), []);
        }
    }
    let (mut looks, mut reported) = (0, 0);
    while reported < 100 {
        let due = pool.scheduler.next_deadline().expect("another look");
        let wait = due.saturating_since(pool.now);
        assert!(wait >= LIMIT / 8 || looks == 0, "{wait:?}");
        reported += pool.wait(wait).len();
        looks += 1;
    }
    assert!(looks <= 10, "{looks} looks");
}

#[test]
fn the_number_of_reports_in_a_look_is_bounded() {
    let mut pool = Pool::new();
    for _ in 0..1_000 {
        pool.submit();
    }
    let reported = pool.wait(LIMIT);
    assert_eq!((reported.len(), pool.more), (100, 900));
    assert_eq!(reported[0].0, 1, "an assigned task comes first");
}
