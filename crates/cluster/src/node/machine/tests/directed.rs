//! Single events, one after the other, for a node with one worker.

use super::*;
use crate::message::Report;

/// A node with one worker, whose tasks are brief, so that it has a backlog.
struct BriefNode {
    machine: Machine,
    now: Monotonic,
    last_token: u64,
}

impl BriefNode {
    fn start() -> Self {
        let (name, functions) = ("brief".to_owned(), Vec::new());
        let has_backlog = true;
        let resources = licenses();
        let settings =
            Settings { name, workers: 1, resources, lease: LEASE, functions, has_backlog };
        let machine = Machine::new(settings, Monotonic::ZERO);
        let mut node = Self { machine, now: Monotonic::ZERO, last_token: 0 };
        for task in 0..16 {
            let token = node.deliver(100 + task, 1).0;
            node.now += Duration::from_millis(1);
            node.handle(Event::Ran { token, end: RunEnd::Done });
            node.handle(Event::Recorded(token));
        }
        node
    }

    fn handle(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        self.machine.handle(self.now, event, &mut actions);
        self.machine.sanity_check();
        actions
    }

    fn deliver(&mut self, task: u64, number: u64) -> (Token, Vec<Action>) {
        self.last_token += 1;
        let (token, lane, key) = (Token(self.last_token), lane_of(1), key(task));
        let facts = Facts { may_be_done: false, retry: Retry::of(0), ..facts(task) };
        let delivery = Delivery { token, lane, key, id: id(task, number), facts };
        (token, self.handle(Event::Delivered(delivery)))
    }
}

#[test]
fn a_cancellation_reaches_every_delivery_of_a_task() {
    let mut node = BriefNode::start();
    let (first, actions) = node.deliver(1, 1);
    assert_eq!(actions, [Action::Run(first)]);
    // The lease was lost, and the task comes back to the same node.
    let (second, _) = node.deliver(1, 2);
    let (history, revision) = (History::default(), 0);
    node.handle(Event::Examined { token: second, is_done: false, history, revision });
    let actions = node.handle(Event::Cancelled { key: key(1), kill: true });
    let expected = [Action::Stop { token: first, kill: true }, Action::Acknowledge(second)];
    assert_eq!(actions[..2], expected);
    let actions = node.handle(Event::Cancelled { key: key(1), kill: true });
    assert_eq!(actions[..], expected[..1], "the second one is gone");
}

#[test]
fn a_cancellation_that_overtakes_its_task_keeps_it_from_running() {
    let mut node = BriefNode::start();
    let cancelled = node.handle(Event::Cancelled { key: key(1), kill: false });
    assert_eq!(cancelled, []);
    let (token, actions) = node.deliver(1, 1);
    assert_eq!(actions, [Action::Examine(token)]);
    let (history, revision) = (History::default(), 0);
    let examined = Event::Examined { token, is_done: true, history, revision };
    assert_eq!(node.handle(examined)[0], Action::Acknowledge(token));
    // Another task of the same name, whose batch has no outcomes any more.
    let (token, actions) = node.deliver(1, 1);
    assert_eq!(actions, [Action::Examine(token)]);
    let (history, revision) = (History::default(), 0);
    let examined = Event::Examined { token, is_done: false, history, revision };
    assert_eq!(node.handle(examined)[0], Action::Run(token));
}

#[test]
fn deaths_of_nodes_do_not_count_for_tasks_that_wait_in_them() {
    let (mut history, revision) = (History::default(), 0);
    for number in 2..7 {
        // Each node dies while the task waits for its worker.
        let mut node = BriefNode::start();
        let (busy, actions) = node.deliver(1, 1);
        assert_eq!(actions, [Action::Run(busy)]);
        let (token, actions) = node.deliver(2, number);
        assert_eq!(actions, [Action::Examine(token)]);
        let found = history.clone();
        let examined = Event::Examined { token, is_done: false, history: found, revision };
        assert_eq!(node.handle(examined), []);
        assert_eq!(history.deaths_before(id(2, number)), 1, "the first delivery may have begun");
    }
    // The next ones die after they have begun it.
    for number in 7..9 {
        let mut node = BriefNode::start();
        let (token, _) = node.deliver(2, number);
        let found = history.clone();
        let examined = Event::Examined { token, is_done: false, history: found, revision };
        let actions = node.handle(examined);
        let Action::RecordBegin { history: recorded, .. } = &actions[0] else {
            panic!("{actions:?}");
        };
        history = recorded.clone();
        assert_eq!(node.handle(Event::Recorded(token))[0], Action::Run(token));
    }
    assert_eq!(history.deaths_before(id(2, 9)), 3);
    assert_eq!(history.attempts_before(id(2, 9)), 3, "of eight deliveries");
    let mut node = BriefNode::start();
    let (token, _) = node.deliver(2, 9);
    let actions = node.handle(Event::Examined { token, is_done: false, history, revision });
    assert!(matches!(actions[0], Action::RecordDead { deaths: 3, .. }), "{actions:?}");
}

#[test]
fn a_node_adds_to_the_history_that_another_has_written() {
    let died = |node: &str, delivery: u64| {
        let incident = Incident::WorkerDied("signal 9".to_owned());
        (id(2, delivery), Report { node: node.to_owned(), incident, delivery })
    };
    let facts = Facts { retry: Retry::of(2), may_be_done: false, ..facts(2) };
    let mut node = BriefNode::start();
    let (token, lane, key, number) = (Token(900), lane_of(1), key(2), id(2, 2));
    let delivery = Delivery { token, lane, key, id: number, facts };
    node.handle(Event::Delivered(delivery));
    let (history, revision) = (History::default(), 0);
    let actions = node.handle(Event::Examined { token, is_done: false, history, revision });
    assert!(matches!(actions[0], Action::RecordBegin { revision: 0, .. }), "{actions:?}");
    // The node of the first delivery was slow, and reports only now that its worker died.
    let mut found = History::default();
    let (first, report) = died("other", 1);
    found.add(first, report);
    assert_eq!(node.handle(Event::Outdated(token)), [Action::Examine(token)]);
    let found = Event::Examined { token, is_done: false, history: found, revision: 7 };
    let actions = node.handle(found);
    let Action::RecordBegin { history, revision: 7, .. } = &actions[0] else {
        panic!("{actions:?}");
    };
    assert_eq!((history.worker_deaths, history.node_deaths), (1, 0));
    assert_eq!(history.begun, Some(number));
    let begun = history.clone();
    assert_eq!(node.handle(Event::Recorded(token))[0], Action::Run(token));
    let end = RunEnd::Died("signal 9".into());
    let actions = node.handle(Event::Ran { token, end });
    assert!(matches!(actions[0], Action::RecordReturn { .. }), "{actions:?}");
    // Meanwhile another node has begun the next delivery, and has counted this one.
    let mut found = begun;
    found.begin(id(2, 3));
    assert_eq!(found.deaths_before(id(2, 3)), 2);
    node.handle(Event::Outdated(token));
    let actions =
        node.handle(Event::Examined { token, is_done: false, history: found, revision: 9 });
    assert_eq!(actions[0], Action::Forget(token));
}

#[test]
fn a_failed_attempt_is_returned_with_its_pause() {
    let second = Duration::from_secs(1);
    let facts = Facts { retry: Retry::of(3).delay(second), may_be_done: false, ..facts(1) };
    let failed = || RunEnd::Failed("no such page".to_owned());
    let died = || RunEnd::Died("signal 9".to_owned());
    let mut history = History::default();
    for (number, end) in (1..).zip([failed(), died(), failed(), failed()]) {
        let mut node = BriefNode::start();
        let (token, lane, key) = (Token(900), lane_of(1), key(1));
        node.handle(Event::Delivered(Delivery { token, lane, key, id: id(1, number), facts }));
        if number > 1 {
            let (history, revision) = (history.clone(), 7);
            node.handle(Event::Examined { token, is_done: false, history, revision });
            node.handle(Event::Recorded(token));
        }
        let actions = node.handle(Event::Ran { token, end });
        if number == 4 {
            assert_eq!(actions[0], Action::RecordOutcome(token));
            break;
        }
        let Action::RecordReturn { history: found, .. } = &actions[0] else {
            panic!("{actions:?}");
        };
        history = found.clone();
        let pause = second * (1 << (number - 1));
        assert_eq!(node.handle(Event::Recorded(token))[0], Action::Return { token, pause });
    }
    assert_eq!((history.failures, history.worker_deaths, history.node_deaths), (2, 1, 0));
    assert_eq!(history.attempts_before(id(1, 4)), 3);
}

#[test]
fn tasks_that_wait_for_long_are_returned() {
    let mut node = BriefNode::start();
    node.deliver(1, 1);
    let more: Vec<_> = (2..6).map(|task| node.deliver(task, 1)).collect();
    for (token, actions) in &more {
        assert_eq!(*actions, [Action::Run(*token)], "tasks are brief");
    }
    let (suspect, _) = node.deliver(6, 2);
    let (history, revision) = (History::default(), 0);
    node.handle(Event::Examined { token: suspect, is_done: false, history, revision });
    node.now = node.machine.next_deadline().unwrap();
    let actions = node.handle(Event::Tick);
    assert!(matches!(actions[0], Action::RecordReturn { token, .. } if token == suspect));
    let stops = more.iter().rev().map(|(token, _)| Action::Stop { token: *token, kill: false });
    assert_eq!(actions[1..], stops.collect::<Vec<_>>(), "all but the one that runs");
    let (token, _) = more[0];
    let actions = node.handle(Event::Ran { token, end: RunEnd::NotBegun });
    assert!(matches!(actions[0], Action::RecordReturn { .. }), "{actions:?}");
    assert_eq!(
        node.handle(Event::Recorded(token))[0],
        Action::Return { token, pause: Duration::ZERO }
    );
    // The next one has waited for less time.
    let mut node = BriefNode::start();
    let (first, _) = node.deliver(1, 1);
    node.deliver(2, 1);
    let tick = node.machine.next_deadline().unwrap();
    node.deliver(3, 1);
    node.handle(Event::Ran { token: first, end: RunEnd::Done });
    node.now = tick;
    assert_eq!(node.handle(Event::Tick), []);
}

#[test]
fn a_task_that_was_recorded_as_begun_waits_for_no_worker() {
    let mut node = BriefNode::start();
    let (begins, _) = node.deliver(1, 2);
    let (history, revision) = (History::default(), 0);
    let examined = Event::Examined { token: begins, is_done: false, history, revision };
    assert!(matches!(node.handle(examined)[0], Action::RecordBegin { .. }));
    // Tasks that come meanwhile take their turn, although tasks are brief.
    let (second, actions) = node.deliver(2, 1);
    assert_eq!(actions, []);
    let (third, actions) = node.deliver(3, 1);
    assert_eq!(actions, []);
    let actions = node.handle(Event::Recorded(begins));
    assert_eq!(actions[..3], [begins, second, third].map(Action::Run));
}

#[test]
fn a_task_that_finds_too_little_of_a_resource_is_returned() {
    let mut node = BriefNode::start();
    let mut deliver = |token: u64, priority: Priority| {
        let (token, lane, key) = (Token(token), lane(priority), key(token));
        let facts = Facts { may_be_done: false, ..facts(1) };
        let delivery = Delivery { token, lane, key, id: id(token.0, 1), facts };
        node.handle(Event::Delivered(delivery))
    };
    // Tasks of two lanes, for each of which there was room, come at the same moment.
    assert_eq!(deliver(900, Priority::Low), [Action::Run(Token(900))], "it has two of three");
    let actions = deliver(901, Priority::Low);
    assert!(matches!(actions[..], [Action::RecordReturn { .. }]), "{actions:?}");
    assert_eq!(deliver(902, Priority::High), [Action::Run(Token(902))], "it has the third one");
    let actions = deliver(903, Priority::High);
    assert!(matches!(actions[..], [Action::RecordReturn { .. }]), "{actions:?}");
}

#[test]
fn an_urgent_task_waits_for_no_endless_flow_of_others() {
    let mut node = BriefNode::start();
    let lanes = [Priority::High, Priority::Normal].map(lane).to_vec();
    let mut actions = node.handle(Event::Lanes(lanes));
    // The urgent lane is empty when it is asked first, and the other one never is.
    let mut asked = Vec::new();
    for _ in 0..100 {
        let pull = actions.drain(..).find_map(|action| match action {
            Action::Pull { pull, lane, batch, .. } => Some((pull, lane.priority, batch)),
            _ => None,
        });
        let (pull, priority, batch) = pull.expect("it has room");
        asked.push(priority);
        if priority == Priority::High {
            actions = node.handle(Event::PullEnded { pull, has_failed: false });
            continue;
        }
        for _ in 0..batch {
            actions.extend(node.deliver(node.last_token, 1).1);
        }
        let tokens: Vec<_> = node.machine.held.keys().copied().collect();
        for token in tokens {
            node.now += Duration::from_millis(20);
            actions.extend(node.handle(Event::Ran { token, end: RunEnd::Done }));
            actions.extend(node.handle(Event::Recorded(token)));
        }
    }
    assert_eq!(asked[..2], [Priority::High, Priority::Normal]);
    let urgent = asked[2..].iter().filter(|priority| **priority == Priority::High).count();
    assert!((10..50).contains(&urgent), "asked for {urgent} times");
}
