//! Decisions, step by step, at times that are numbers.

use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;

/// A machine with a reaper that answers what it is told to.
struct Test {
    machine: Machine,
    now: u64,
    reported: Vec<TimerEvent>,
    reaped: Vec<(u64, Vec<String>, u32)>,
    cleaned_up: Vec<(u32, u64)>,
    answer: fn() -> Reaped,
}

impl Test {
    fn new() -> Self {
        let machine = Machine::default();
        let answer = || Reaped::Gone(Swept::default());
        let (reported, reaped, cleaned_up) = (Vec::new(), Vec::new(), Vec::new());
        Self { machine, now: 0, reported, reaped, cleaned_up, answer }
    }

    fn with_workers(answer: fn() -> Reaped) -> Self {
        let mut test = Self { answer, ..Self::new() };
        for number in [1, 2] {
            let pid = u32::try_from(number).expect("small") + 100;
            test.tell(Event::Registered { worker: WorkerId(number), pid });
        }
        test.reported.clear();
        test
    }

    fn tell(&mut self, event: Event) {
        let mut outbox = Vec::new();
        self.machine.handle(self.now, event, &mut outbox);
        while !outbox.is_empty() {
            match outbox.remove(0) {
                Action::Reap { worker, timers, step } => {
                    let scopes = timers.iter().map(|timer| timer.scope.to_string()).collect();
                    self.reaped.push((worker.0, scopes, step));
                    let result = (self.answer)();
                    let event = Event::Reaped { worker, result };
                    self.machine.handle(self.now, event, &mut outbox);
                }
                Action::Report(event) => self.reported.push(event),
                Action::CleanUp { pid, deadline } => {
                    self.cleaned_up.push((pid, deadline.as_nanos()));
                }
                Action::Disconnect { .. } => {}
            }
        }
        self.machine.sanity_check();
    }

    fn acquire(&mut self, worker: u64, scope: &str, deadline: u64) {
        let (worker, scope) = (WorkerId(worker), scope.into());
        self.tell(Event::Acquire { worker, scope, deadline, ladder: None });
    }

    fn release(&mut self, worker: u64, scope: &str) {
        self.tell(Event::Release { worker: WorkerId(worker), scope: scope.into() });
    }

    /// Lets time pass, with a tick whenever the machine wants one.
    fn until(&mut self, time: u64) {
        while let Some(next) = self.machine.next_deadline().filter(|next| *next <= time) {
            self.now = self.now.max(next);
            self.tell(Event::Tick);
        }
        self.now = time;
        self.tell(Event::Tick);
    }

    /// Whose timers were reaped so far, and which.
    fn reaped(&self) -> Vec<(u64, Vec<&str>)> {
        self.reaped
            .iter()
            .map(|(worker, scopes, _)| (*worker, scopes.iter().map(String::as_str).collect()))
            .collect()
    }
}

impl Machine {
    fn sanity_check(&self) {
        assert!(self.touched.is_empty());
        let mut alarms = 0;
        for (id, worker) in &self.workers {
            assert!(worker.new == 0 && !worker.due, "nothing is left of a tick");
            for (scope, armed) in &worker.armed {
                let alarm = self.alarms.get(armed.alarm).expect("an armed scope has an alarm");
                assert!(alarm.worker == *id && alarm.scope.as_ref() == Some(scope));
            }
            alarms += worker.armed.len();
            match worker.phase {
                Phase::Watched => assert!(worker.expired.is_empty() && worker.kept == 0),
                Phase::Kept { alarm } | Phase::Doomed { alarm, .. } => {
                    let alarm = self.alarms.get(alarm).expect("it is reaped again");
                    assert!(alarm.worker == *id && alarm.scope.is_none());
                    assert!(!worker.expired.is_empty());
                    alarms += 1;
                }
            }
            if let Phase::Doomed { .. } = worker.phase {
                assert!(worker.armed.is_empty());
            }
        }
        assert_eq!(alarms, self.alarms.len(), "no alarm is nobody's");
    }
}

#[test]
fn a_deadline_is_never_early_and_expires_at_its_very_moment() {
    let mut test = Test::with_workers(|| Reaped::Gone(Swept::default()));
    test.acquire(1, "a", 10);
    test.until(9);
    assert!(test.reaped.is_empty());
    test.until(10);
    assert_eq!(test.reaped(), [(1, vec!["a"])]);
}

#[test]
fn one_expired_timer_reaps_its_worker_once_and_clears_its_other_timers() {
    let mut test = Test::with_workers(|| Reaped::Gone(Swept::default()));
    test.acquire(1, "a", 10);
    test.acquire(1, "b", 10);
    test.acquire(1, "later", 50);
    test.acquire(2, "other", 60);
    test.until(20);
    assert_eq!(test.reaped(), [(1, vec!["a", "b"])]);
    assert_eq!(test.machine.next_deadline(), Some(60), "only the other worker's is left");
    let killed = |event: &&TimerEvent| matches!(event, TimerEvent::Killed { pid: 101, .. });
    assert_eq!(test.reported.iter().filter(killed).count(), 1);
}

#[test]
fn a_release_cancels_and_a_vacuous_one_is_harmless() {
    let mut test = Test::with_workers(|| Reaped::Gone(Swept::default()));
    test.acquire(1, "a", 10);
    test.release(1, "never acquired");
    test.release(2, "a");
    test.release(7, "of nobody");
    assert_eq!(test.machine.next_deadline(), Some(10));
    test.release(1, "a");
    test.release(1, "a");
    test.until(100);
    assert!(test.reaped.is_empty());
}

#[test]
fn acquiring_the_same_scope_again_replaces_its_deadline() {
    let mut test = Test::with_workers(|| Reaped::Gone(Swept::default()));
    test.acquire(1, "a", 10);
    test.acquire(1, "a", 30);
    test.until(29);
    assert!(test.reaped.is_empty());
    test.acquire(1, "a", 29);
    test.until(29);
    assert_eq!(test.reaped(), [(1, vec!["a"])]);
    test.until(100);
    assert_eq!(test.reaped.len(), 1);
}

#[test]
fn the_same_scope_of_two_workers_is_two_timers() {
    let mut test = Test::with_workers(|| Reaped::Gone(Swept::default()));
    test.acquire(1, "a", 10);
    test.acquire(2, "a", 20);
    test.release(2, "a");
    test.until(30);
    assert_eq!(test.reaped(), [(1, vec!["a"])]);
}

#[test]
fn a_worker_that_exits_loses_its_timers_at_once() {
    let mut test = Test::with_workers(|| Reaped::Gone(Swept::default()));
    test.acquire(1, "a", 10);
    test.tell(Event::Exited { worker: WorkerId(1) });
    assert_eq!(test.machine.next_deadline(), None);
    assert_eq!(test.reported, [TimerEvent::Exited { pid: 101, timers: 1 }]);
    test.acquire(1, "from the grave", 20);
    test.until(100);
    assert!(test.reaped.is_empty());
}

#[test]
fn a_worker_that_is_kept_keeps_its_timers_and_is_reaped_again_after_longer_and_longer_pauses() {
    let mut test = Test::with_workers(|| Reaped::Kept("not now".into()));
    test.acquire(1, "a", SECOND);
    test.acquire(1, "b", 2 * SECOND);
    test.until(60 * SECOND);
    let pauses: Vec<Duration> = test
        .reported
        .iter()
        .filter_map(|event| match event {
            TimerEvent::Failed { retry_in, .. } => *retry_in,
            _ => None,
        })
        .collect();
    let expected =
        [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000, 10_000, 10_000];
    assert_eq!(pauses, expected.map(Duration::from_millis));
    assert_eq!(test.reaped()[0], (1, vec!["a"]));
    assert_eq!(test.reaped()[5], (1, vec!["a", "b"]), "what expires meanwhile is added");
    test.answer = || Reaped::Gone(Swept::default());
    test.until(80 * SECOND);
    assert_eq!(test.machine.next_deadline(), None);
}

#[test]
fn a_worker_that_is_kept_is_left_alone_once_it_has_released_what_expired() {
    let mut test = Test::with_workers(|| Reaped::Kept("not now".into()));
    test.acquire(1, "a", SECOND);
    test.acquire(1, "b", SECOND);
    test.until(SECOND);
    test.release(1, "a");
    test.acquire(1, "b", 100 * SECOND);
    test.until(99 * SECOND);
    assert_eq!(test.reaped.len(), 1);
    test.until(100 * SECOND);
    assert_eq!(test.reaped()[1], (1, vec!["b"]));
}

#[test]
fn a_ladder_goes_on_whatever_the_worker_asks_for() {
    let mut test = Test::with_workers(|| Reaped::Again(Duration::from_secs(2)));
    test.acquire(1, "a", SECOND);
    test.acquire(1, "b", 2 * SECOND);
    test.until(SECOND);
    test.release(1, "a");
    test.acquire(1, "a", HOUR);
    assert_eq!(test.machine.next_deadline(), Some(3 * SECOND));
    test.until(3 * SECOND);
    test.answer = || Reaped::Gone(Swept::default());
    test.until(5 * SECOND);
    let steps: Vec<u32> = test.reaped.iter().map(|(_, _, step)| *step).collect();
    assert_eq!(steps, [0, 1, 2]);
    let lateness = Duration::from_secs(4);
    let killed = TimerEvent::Killed { pid: 101, lateness, swept: Swept::default() };
    assert_eq!(test.reported.last(), Some(&killed));
    assert_eq!(test.machine.next_deadline(), None);
}

#[test]
fn a_ladder_ends_when_its_worker_does_and_what_it_leaves_behind_is_cleaned_up() {
    let mut test = Test::with_workers(|| Reaped::Again(Duration::from_secs(2)));
    test.acquire(1, "a", SECOND);
    test.until(SECOND);
    test.tell(Event::Exited { worker: WorkerId(1) });
    test.until(HOUR);
    assert_eq!(test.reaped.len(), 1);
    assert_eq!(test.cleaned_up, [(101, SECOND)]);
}

#[test]
fn a_reaper_that_panics_clears_the_timers_and_the_server_goes_on() {
    let mut test = Test::with_workers(|| Reaped::Panicked("oh".into()));
    test.acquire(1, "a", SECOND);
    test.acquire(1, "b", HOUR);
    test.acquire(2, "c", 2 * SECOND);
    test.until(SECOND);
    assert_eq!(test.machine.next_deadline(), Some(2 * SECOND));
    test.until(2 * SECOND);
    assert_eq!(test.reaped(), [(1, vec!["a"]), (2, vec!["c"])]);
}

#[test]
fn a_timer_that_is_only_logged_is_logged_once_and_disarms_no_other() {
    let mut test = Test::with_workers(|| Reaped::Logged);
    test.acquire(1, "a", SECOND);
    test.acquire(1, "b", 5 * SECOND);
    test.until(4 * SECOND);
    assert_eq!(test.reaped(), [(1, vec!["a"])]);
    assert_eq!(test.machine.next_deadline(), Some(5 * SECOND));
}

#[test]
fn a_clock_that_is_stepped_by_an_hour_changes_no_deadline() {
    // The machine knows one clock, the monotonic one. What people call a step of the clock happens to another, of which it
    // never hears; here even the one that it knows jumps, as after a suspend.
    let mut test = Test::with_workers(|| Reaped::Gone(Swept::default()));
    test.acquire(1, "a", HOUR + SECOND);
    test.acquire(2, "b", 3 * HOUR);
    test.now = HOUR;
    test.tell(Event::Tick);
    assert!(test.reaped.is_empty(), "a jump forward makes nothing due that is not");
    test.now = 0;
    test.tell(Event::Tick);
    assert!(test.reaped.is_empty(), "nor does one back");
    assert_eq!(test.machine.next_deadline(), Some(HOUR + SECOND));
    test.until(HOUR + SECOND);
    assert_eq!(test.reaped(), [(1, vec!["a"])]);
}

#[test]
fn timers_of_a_worker_that_is_kept_count_after_they_have_expired() {
    let mut test = Test::with_workers(|| Reaped::Kept("not now".into()));
    let mut outbox = Vec::new();
    let worker = WorkerId(1);
    for number in 0..=TIMERS_PER_WORKER as u64 {
        let scope = Scope::Unique(number);
        let event = Event::Acquire { worker, scope, deadline: 0, ladder: None };
        test.machine.handle(0, event, &mut outbox);
        if number % 10_000 == 0 {
            test.machine.handle(1, Event::Tick, &mut outbox);
            let reaped = outbox.iter().any(|action| matches!(action, Action::Reap { .. }));
            if reaped {
                let result = Reaped::Kept(String::new());
                test.machine.handle(1, Event::Reaped { worker, result }, &mut outbox);
            }
        }
    }
    assert_eq!(test.machine.timers(worker), TIMERS_PER_WORKER);
    assert!(outbox.iter().any(|action| matches!(action, Action::Disconnect { .. })));
}

#[test]
fn a_worker_that_wants_too_many_timers_is_cut_off_and_keeps_those_that_it_has() {
    let mut test = Test::with_workers(|| Reaped::Gone(Swept::default()));
    for number in 0..TIMERS_PER_WORKER as u64 {
        let (worker, scope) = (WorkerId(1), Scope::Unique(number));
        let mut outbox = Vec::new();
        let event = Event::Acquire { worker, scope, deadline: HOUR, ladder: None };
        test.machine.handle(0, event, &mut outbox);
        assert!(outbox.is_empty());
    }
    let mut outbox = Vec::new();
    let (worker, scope) = (WorkerId(1), Scope::from("one more"));
    let event = Event::Acquire { worker, scope, deadline: HOUR, ladder: None };
    test.machine.handle(0, event, &mut outbox);
    assert_eq!(
        outbox[1],
        Action::Disconnect { worker, reason: "more than 65536 timers at once".into() }
    );
    assert_eq!(test.machine.alarms.len(), TIMERS_PER_WORKER);
}

#[derive(Debug, Clone)]
enum Step {
    Acquire { worker: u64, scope: u64, after: u64 },
    Release { worker: u64, scope: u64 },
    Exit { worker: u64 },
    Pass { time: u64, answer: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let worker = || 1..4_u64;
    let scope = || 0..3_u64;
    prop_oneof![
        6 => (worker(), scope(), 0..2 * SECOND)
            .prop_map(|(worker, scope, after)| Step::Acquire { worker, scope, after }),
        3 => (worker(), scope()).prop_map(|(worker, scope)| Step::Release { worker, scope }),
        1 => worker().prop_map(|worker| Step::Exit { worker }),
        4 => (0..SECOND, 0..ANSWERS.len()).prop_map(|(time, answer)| Step::Pass { time, answer }),
    ]
}

const ANSWERS: [fn() -> Reaped; 5] = [
    || Reaped::Gone(Swept::default()),
    || Reaped::Kept(String::new()),
    || Reaped::Again(Duration::from_millis(300)),
    || Reaped::Logged,
    || Reaped::Panicked(String::new()),
];

proptest! {
    #[test]
    fn whatever_happens_no_timer_is_lost_or_early_or_nobodys(steps in proptest::collection::vec(step(), 0..100)) {
        let mut test = Test::new();
        // Workers get new ids when they come back, as processes do.
        let mut ids: HashMap<u64, u64> = HashMap::new();
        let mut next_id = 0;
        for step in steps {
            let mut id = |test: &mut Test, worker| *ids.entry(worker).or_insert_with(|| {
                next_id += 1;
                test.tell(Event::Registered { worker: WorkerId(next_id), pid: 1 });
                next_id
            });
            match step {
                Step::Acquire { worker, scope, after } => {
                    let worker = WorkerId(id(&mut test, worker));
                    let (scope, deadline) = (Scope::Unique(scope), test.now + after);
                    test.tell(Event::Acquire { worker, scope, deadline, ladder: None });
                }
                Step::Release { worker, scope } => {
                    let worker = WorkerId(id(&mut test, worker));
                    test.tell(Event::Release { worker, scope: Scope::Unique(scope) });
                }
                Step::Exit { worker } => {
                    if let Some(id) = ids.remove(&worker) {
                        test.tell(Event::Exited { worker: WorkerId(id) });
                    }
                }
                Step::Pass { time, answer } => {
                    test.answer = ANSWERS[answer];
                    let before = test.now;
                    test.until(before + time);
                }
            }
            for event in test.reported.drain(..) {
                if let TimerEvent::Expired { timers, .. } = event {
                    prop_assert!(!timers.is_empty());
                    prop_assert!(timers.iter().all(|timer| timer.deadline.as_nanos() <= test.now));
                }
            }
        }
        // With a reaper that works, and the last deadline past, nothing is left.
        test.answer = ANSWERS[0];
        test.until(test.now + 20 * SECOND);
        prop_assert_eq!(test.machine.next_deadline(), None);
    }
}
