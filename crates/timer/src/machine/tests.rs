//! The machine's decisions, step by step. Times are plain numbers.

use brigade_sys::process::Swept;
use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;

/// A machine and a reaper that returns what the test chooses.
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
        let answer = || Ok(Ok(Reap::Gone(Swept::default())));
        let (reported, reaped, cleaned_up) = (Vec::new(), Vec::new(), Vec::new());
        Self { machine, now: 0, reported, reaped, cleaned_up, answer }
    }

    fn with_clients(answer: fn() -> Reaped) -> Self {
        let mut test = Self { answer, ..Self::new() };
        for number in [1, 2] {
            let pid = u32::try_from(number).expect("small") + 100;
            test.tell(Event::Registered { client: ClientId(number), pid });
        }
        test.reported.clear();
        test
    }

    fn tell(&mut self, event: Event) {
        let mut outbox = Vec::new();
        self.machine.handle(Monotonic::from_nanos(self.now), event, &mut outbox);
        while !outbox.is_empty() {
            match outbox.remove(0) {
                Action::Reap { client, timers, step } => {
                    let scopes = timers.iter().map(|timer| timer.scope.to_string()).collect();
                    self.reaped.push((client.0, scopes, step));
                    let result = (self.answer)();
                    let event = Event::Reaped { client, result };
                    self.machine.handle(Monotonic::from_nanos(self.now), event, &mut outbox);
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

    fn acquire(&mut self, client: u64, scope: &str, deadline: u64) {
        let (client, scope) = (ClientId(client), scope.into());
        let deadline = Monotonic::from_nanos(deadline);
        self.tell(Event::Acquire { client, scope, deadline, escalation: None });
    }

    fn next_deadline(&self) -> Option<u64> {
        self.machine.next_deadline().map(Monotonic::as_nanos)
    }

    fn release(&mut self, client: u64, scope: &str) {
        self.tell(Event::Release { client: ClientId(client), scope: scope.into() });
    }

    /// Advances the time, with a tick whenever the machine asks for one.
    fn until(&mut self, time: u64) {
        while let Some(next) = self.next_deadline().filter(|next| *next <= time) {
            self.now = self.now.max(next);
            self.tell(Event::Tick);
        }
        self.now = time;
        self.tell(Event::Tick);
    }

    /// The processes that were reaped so far, and their timers.
    fn reaped(&self) -> Vec<(u64, Vec<&str>)> {
        self.reaped
            .iter()
            .map(|(client, scopes, _)| (*client, scopes.iter().map(String::as_str).collect()))
            .collect()
    }
}

impl Machine {
    fn sanity_check(&self) {
        assert!(self.touched.is_empty());
        let mut alarms = 0;
        for (id, client) in &self.clients {
            assert!(client.new == 0 && !client.due, "the state of a tick is reset");
            for (scope, armed) in &client.armed {
                let alarm = self.alarms.get(armed.alarm).expect("an armed scope has an alarm");
                assert!(alarm.client == *id && alarm.scope.as_ref() == Some(scope));
            }
            alarms += client.armed.len();
            match client.phase {
                Phase::Watched => assert!(client.expired.is_empty() && client.kept == 0),
                Phase::Kept { alarm } | Phase::Escalating { alarm, .. } => {
                    let alarm = self.alarms.get(alarm).expect("an alarm for the next step");
                    assert!(alarm.client == *id && alarm.scope.is_none());
                    assert!(!client.expired.is_empty());
                    alarms += 1;
                }
            }
            if let Phase::Escalating { .. } = client.phase {
                assert!(client.armed.is_empty());
            }
        }
        assert_eq!(alarms, self.alarms.len(), "every alarm has an owner");
    }
}

#[test]
fn a_deadline_expires_exactly_on_time() {
    let mut test = Test::with_clients(|| Ok(Ok(Reap::Gone(Swept::default()))));
    test.acquire(1, "a", 10);
    test.until(9);
    assert!(test.reaped.is_empty());
    test.until(10);
    assert_eq!(test.reaped(), [(1, vec!["a"])]);
}

#[test]
fn a_process_is_reaped_once_and_loses_its_other_timers() {
    let mut test = Test::with_clients(|| Ok(Ok(Reap::Gone(Swept::default()))));
    test.acquire(1, "a", 10);
    test.acquire(1, "b", 10);
    test.acquire(1, "later", 50);
    test.acquire(2, "other", 60);
    test.until(20);
    assert_eq!(test.reaped(), [(1, vec!["a", "b"])]);
    assert_eq!(test.next_deadline(), Some(60), "only the other process's is left");
    let killed = |event: &&TimerEvent| matches!(event, TimerEvent::Killed { pid: 101, .. });
    assert_eq!(test.reported.iter().filter(killed).count(), 1);
}

#[test]
fn a_release_cancels_and_one_of_an_unknown_scope_is_harmless() {
    let mut test = Test::with_clients(|| Ok(Ok(Reap::Gone(Swept::default()))));
    test.acquire(1, "a", 10);
    test.release(1, "never acquired");
    test.release(2, "a");
    test.release(7, "of nobody");
    assert_eq!(test.next_deadline(), Some(10));
    test.release(1, "a");
    test.release(1, "a");
    test.until(100);
    assert!(test.reaped.is_empty());
}

#[test]
fn acquiring_the_same_scope_again_replaces_its_deadline() {
    let mut test = Test::with_clients(|| Ok(Ok(Reap::Gone(Swept::default()))));
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
fn the_same_scope_of_two_processes_is_two_timers() {
    let mut test = Test::with_clients(|| Ok(Ok(Reap::Gone(Swept::default()))));
    test.acquire(1, "a", 10);
    test.acquire(2, "a", 20);
    test.release(2, "a");
    test.until(30);
    assert_eq!(test.reaped(), [(1, vec!["a"])]);
}

#[test]
fn a_process_that_exits_loses_its_timers_at_once() {
    let mut test = Test::with_clients(|| Ok(Ok(Reap::Gone(Swept::default()))));
    test.acquire(1, "a", 10);
    test.tell(Event::Exited { client: ClientId(1) });
    assert_eq!(test.next_deadline(), None);
    assert_eq!(test.reported, [TimerEvent::Exited { pid: 101, timers: 1 }]);
    test.acquire(1, "after the exit", 20);
    test.until(100);
    assert!(test.reaped.is_empty());
}

#[test]
fn a_kept_process_is_reaped_again_after_growing_pauses() {
    let mut test = Test::with_clients(|| Ok(Err(io::Error::other("not now"))));
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
    assert_eq!(test.reaped()[5], (1, vec!["a", "b"]), "timers that expire meanwhile are added");
    test.answer = || Ok(Ok(Reap::Gone(Swept::default())));
    test.until(80 * SECOND);
    assert_eq!(test.next_deadline(), None);
}

#[test]
fn a_kept_process_that_releases_its_scopes_is_left_alone() {
    let mut test = Test::with_clients(|| Ok(Err(io::Error::other("not now"))));
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
fn requests_do_not_stop_an_escalation() {
    let mut test = Test::with_clients(|| Ok(Ok(Reap::Again(Duration::from_secs(2)))));
    test.acquire(1, "a", SECOND);
    test.acquire(1, "b", 2 * SECOND);
    test.until(SECOND);
    test.release(1, "a");
    test.acquire(1, "a", HOUR);
    assert_eq!(test.next_deadline(), Some(3 * SECOND));
    test.until(3 * SECOND);
    test.answer = || Ok(Ok(Reap::Gone(Swept::default())));
    test.until(5 * SECOND);
    let steps: Vec<u32> = test.reaped.iter().map(|(_, _, step)| *step).collect();
    assert_eq!(steps, [0, 1, 2]);
    let lateness = Duration::from_secs(4);
    let killed = TimerEvent::Killed { pid: 101, lateness, swept: Swept::default() };
    assert_eq!(test.reported.last(), Some(&killed));
    assert_eq!(test.next_deadline(), None);
}

#[test]
fn an_exit_ends_the_escalation_and_is_cleaned_up() {
    let mut test = Test::with_clients(|| Ok(Ok(Reap::Again(Duration::from_secs(2)))));
    test.acquire(1, "a", SECOND);
    test.until(SECOND);
    test.tell(Event::Exited { client: ClientId(1) });
    test.until(HOUR);
    assert_eq!(test.reaped.len(), 1);
    assert_eq!(test.cleaned_up, [(101, SECOND)]);
}

#[test]
fn a_reaper_that_panics_clears_the_timers_of_its_process() {
    let mut test = Test::with_clients(|| Err("oh".into()));
    test.acquire(1, "a", SECOND);
    test.acquire(1, "b", HOUR);
    test.acquire(2, "c", 2 * SECOND);
    test.until(SECOND);
    assert_eq!(test.next_deadline(), Some(2 * SECOND));
    test.until(2 * SECOND);
    assert_eq!(test.reaped(), [(1, vec!["a"]), (2, vec!["c"])]);
}

#[test]
fn a_logged_timer_is_logged_once_and_disarms_no_other() {
    let mut test = Test::with_clients(|| Ok(Ok(Reap::Logged)));
    test.acquire(1, "a", SECOND);
    test.acquire(1, "b", 5 * SECOND);
    test.until(4 * SECOND);
    assert_eq!(test.reaped(), [(1, vec!["a"])]);
    assert_eq!(test.next_deadline(), Some(5 * SECOND));
}

#[test]
fn a_clock_step_changes_no_deadline() {
    // The machine knows only the monotonic clock, which no step of the wall clock moves. Here even
    // that one jumps, as after a suspend.
    let mut test = Test::with_clients(|| Ok(Ok(Reap::Gone(Swept::default()))));
    test.acquire(1, "a", HOUR + SECOND);
    test.acquire(2, "b", 3 * HOUR);
    test.now = HOUR;
    test.tell(Event::Tick);
    assert!(test.reaped.is_empty(), "a jump forward reaps nothing before its deadline");
    test.now = 0;
    test.tell(Event::Tick);
    assert!(test.reaped.is_empty(), "nor does a jump back");
    assert_eq!(test.next_deadline(), Some(HOUR + SECOND));
    test.until(HOUR + SECOND);
    assert_eq!(test.reaped(), [(1, vec!["a"])]);
}

#[test]
fn expired_timers_of_a_kept_process_count_toward_its_limit() {
    let mut test = Test::with_clients(|| Ok(Err(io::Error::other("not now"))));
    let mut outbox = Vec::new();
    let client = ClientId(1);
    for number in 0..=TIMERS_PER_PROCESS as u64 {
        let scope = Scope::Unique(number);
        let event =
            Event::Acquire { client, scope, deadline: Monotonic::from_nanos(0), escalation: None };
        test.machine.handle(Monotonic::from_nanos(0), event, &mut outbox);
        if number % 10_000 == 0 {
            test.machine.handle(Monotonic::from_nanos(1), Event::Tick, &mut outbox);
            let reaped = outbox.iter().any(|action| matches!(action, Action::Reap { .. }));
            if reaped {
                let result = Ok(Ok(Reap::Kept));
                test.machine.handle(
                    Monotonic::from_nanos(1),
                    Event::Reaped { client, result },
                    &mut outbox,
                );
            }
        }
    }
    assert_eq!(test.machine.timers(client), TIMERS_PER_PROCESS);
    assert!(outbox.iter().any(|action| matches!(action, Action::Disconnect { .. })));
}

#[test]
fn a_process_with_too_many_timers_loses_its_connection() {
    let mut test = Test::with_clients(|| Ok(Ok(Reap::Gone(Swept::default()))));
    for number in 0..TIMERS_PER_PROCESS as u64 {
        let (client, scope) = (ClientId(1), Scope::Unique(number));
        let mut outbox = Vec::new();
        let event = Event::Acquire {
            client,
            scope,
            deadline: Monotonic::from_nanos(HOUR),
            escalation: None,
        };
        test.machine.handle(Monotonic::from_nanos(0), event, &mut outbox);
        assert!(outbox.is_empty());
    }
    let mut outbox = Vec::new();
    let (client, scope) = (ClientId(1), Scope::from("one more"));
    let event =
        Event::Acquire { client, scope, deadline: Monotonic::from_nanos(HOUR), escalation: None };
    test.machine.handle(Monotonic::from_nanos(0), event, &mut outbox);
    assert_eq!(
        outbox[1],
        Action::Disconnect { client, reason: "more than 65536 timers at once".into() }
    );
    assert_eq!(test.machine.alarms.len(), TIMERS_PER_PROCESS);
}

#[derive(Debug, Clone)]
enum Step {
    Acquire { client: u64, scope: u64, after: u64 },
    Release { client: u64, scope: u64 },
    Exit { client: u64 },
    Pass { time: u64, answer: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let client = || 1..4_u64;
    let scope = || 0..3_u64;
    prop_oneof![
        6 => (client(), scope(), 0..2 * SECOND)
            .prop_map(|(client, scope, after)| Step::Acquire { client, scope, after }),
        3 => (client(), scope()).prop_map(|(client, scope)| Step::Release { client, scope }),
        1 => client().prop_map(|client| Step::Exit { client }),
        4 => (0..SECOND, 0..ANSWERS.len()).prop_map(|(time, answer)| Step::Pass { time, answer }),
    ]
}

const ANSWERS: [fn() -> Reaped; 5] = [
    || Ok(Ok(Reap::Gone(Swept::default()))),
    || Ok(Ok(Reap::Kept)),
    || Ok(Ok(Reap::Again(Duration::from_millis(300)))),
    || Ok(Ok(Reap::Logged)),
    || Err(String::new()),
];

proptest! {
    #[test]
    fn random_events_never_lose_a_timer_or_fire_it_early(steps in proptest::collection::vec(step(), 0..100)) {
        let mut test = Test::new();
        // A process that comes back gets a new id.
        let mut ids: HashMap<u64, u64> = HashMap::new();
        let mut next_id = 0;
        for step in steps {
            let mut id = |test: &mut Test, client| *ids.entry(client).or_insert_with(|| {
                next_id += 1;
                test.tell(Event::Registered { client: ClientId(next_id), pid: 1 });
                next_id
            });
            match step {
                Step::Acquire { client, scope, after } => {
                    let client = ClientId(id(&mut test, client));
                    let (scope, deadline) = (Scope::Unique(scope), Monotonic::from_nanos(test.now + after));
                    test.tell(Event::Acquire { client, scope, deadline, escalation: None });
                }
                Step::Release { client, scope } => {
                    let client = ClientId(id(&mut test, client));
                    test.tell(Event::Release { client, scope: Scope::Unique(scope) });
                }
                Step::Exit { client } => {
                    if let Some(id) = ids.remove(&client) {
                        test.tell(Event::Exited { client: ClientId(id) });
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
        // Once the reaper succeeds and the last deadline has passed, nothing is left.
        test.answer = ANSWERS[0];
        test.until(test.now + 20 * SECOND);
        prop_assert_eq!(test.next_deadline(), None);
    }
}
