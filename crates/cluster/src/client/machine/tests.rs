//! Tests of the machine against a model of a server, nodes and a lossy network.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proptest::prelude::*;

use super::*;

/// The recorded outcome of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recorded {
    Value,
    Ended(Ticket),
}

/// A server with a queue of limited length, nodes that run what is in it, and messages that have
/// not arrived. All tasks have names, so that a ticket may belong to a task of an earlier run.
#[derive(Default)]
struct Model {
    queue: BTreeMap<Ticket, u64>,
    outcomes: HashMap<Ticket, Recorded>,
    next_sequence: u64,
    room: usize,
    /// Events on their way to the machine.
    mail: Vec<(Ticket, Fact)>,
    /// Completions that were reported.
    completed: HashMap<Ticket, Completion>,
    left_window: BTreeSet<Ticket>,
    forgotten: BTreeSet<Ticket>,
    /// Tasks that the server has lost, with their outcomes.
    lost: BTreeSet<Ticket>,
}

impl Model {
    /// Returns `true` if a task has an outcome, perhaps one of this kind, or if that was lost.
    fn has(&self, ticket: Ticket, kind: Option<Recorded>) -> bool {
        let is_it = |outcome: &Recorded| kind.is_none_or(|kind| *outcome == kind);
        self.outcomes.get(&ticket).is_some_and(is_it) || self.lost.contains(&ticket)
    }

    fn publish(&mut self, ticket: Ticket) -> Result<u64, RefusalKind> {
        if self.queue.contains_key(&ticket) {
            return Err(RefusalKind::Exists);
        }
        if self.queue.len() >= self.room {
            return Err(RefusalKind::Full);
        }
        self.next_sequence += 1;
        self.queue.insert(ticket, self.next_sequence);
        Ok(self.next_sequence)
    }

    fn record(&mut self, ticket: Ticket, outcome: Recorded) -> Result<(), RefusalKind> {
        if self.outcomes.contains_key(&ticket) {
            return Err(RefusalKind::Exists);
        }
        self.outcomes.insert(ticket, outcome);
        self.mail.push((ticket, Fact::Outcome));
        Ok(())
    }

    fn find(&self, ticket: Ticket) -> Found {
        let has_answer = |(of, event): &(Ticket, Fact)| {
            *of == ticket && matches!(event, Fact::Published(_) | Fact::Looked { .. })
        };
        if self.outcomes.contains_key(&ticket)
            || self.queue.contains_key(&ticket)
            || self.mail.iter().any(has_answer)
        {
            Found::Task
        } else {
            Found::Nowhere(String::new())
        }
    }

    /// Loses a task, its outcome, and the news of it.
    fn lose(&mut self, ticket: Ticket) {
        self.queue.remove(&ticket);
        self.outcomes.remove(&ticket);
        self.mail.retain(|(of, event)| *of != ticket || *event != Fact::Outcome);
        self.lost.insert(ticket);
    }

    /// Carries the steps out. With `is_lost`, the first answer to a publication is lost, and the
    /// message is sent again.
    fn carry_out(&mut self, actions: Vec<Action>, is_lost: bool) {
        for action in actions {
            match action {
                Action::Look(ticket) => {
                    let is_found = self.outcomes.contains_key(&ticket);
                    self.mail.push((ticket, Fact::Looked { is_found }));
                }
                Action::Publish(ticket) => {
                    let mut answer = self.publish(ticket);
                    if is_lost {
                        answer = self.publish(ticket);
                    }
                    self.mail.push((ticket, Fact::Published(answer)));
                }
                Action::OfferEnd { ticket, .. } => {
                    let mut answer = self.record(ticket, Recorded::Ended(ticket));
                    if is_lost {
                        answer = self.record(ticket, Recorded::Ended(ticket));
                    }
                    self.mail.push((ticket, Fact::EndOffered(answer)));
                }
                Action::LeaveWindow(ticket) => {
                    assert!(self.left_window.insert(ticket), "it left the window twice");
                }
                Action::Complete { ticket, with } => {
                    match with {
                        Completion::Outcome => assert!(self.has(ticket, None)),
                        Completion::Ended { .. } => {
                            assert!(self.has(ticket, Some(Recorded::Ended(ticket))));
                        }
                        Completion::Lost(_) => {
                            assert!(self.lost.contains(&ticket), "it is not lost");
                        }
                        Completion::Full | Completion::Failed(_) => {}
                    }
                    let before = self.completed.insert(ticket, with);
                    assert_eq!(before, None, "it was completed twice");
                }
                Action::Broadcast { ticket, .. } => {
                    assert!(self.has(ticket, Some(Recorded::Ended(ticket))));
                }
                Action::Search { ticket, .. } => {
                    let found = self.find(ticket);
                    let is_done = self.outcomes.contains_key(&ticket);
                    self.mail.push((ticket, Fact::Searched(found)));
                    self.mail.extend(is_done.then_some((ticket, Fact::Outcome)));
                }
                Action::GiveUp(ticket) => {
                    let is_answer =
                        |event: &Fact| matches!(event, Fact::Published(_) | Fact::EndOffered(_));
                    self.mail.retain(|(of, event)| *of != ticket || !is_answer(event));
                }
                Action::Remove { ticket, sequence } => {
                    assert!(self.has(ticket, None), "a wanted task was removed");
                    if sequence.is_none_or(|sequence| self.queue.get(&ticket) == Some(&sequence)) {
                        self.queue.remove(&ticket);
                    }
                }
                Action::Forget(ticket) => {
                    assert!(self.completed.contains_key(&ticket), "forgotten without an outcome");
                    assert!(self.left_window.contains(&ticket));
                    assert!(self.forgotten.insert(ticket));
                }
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Submit {
        when_full: WhenFull,
        has_outcome: bool,
        is_old: bool,
    },
    Want {
        which: usize,
        kill: bool,
    },
    /// A message arrives, in any order.
    Arrive {
        which: usize,
        is_lost: bool,
    },
    /// The server loses a task that it has taken, or its outcome.
    Lose {
        which: usize,
    },
    /// A node runs a task and keeps its message, as after a crash of the server.
    Run {
        which: usize,
        acks: bool,
    },
    Wait,
}

fn step() -> impl Strategy<Value = Step> {
    let end = Monotonic::ZERO + 3 * MAX_PAUSE;
    let when_full =
        prop_oneof![Just(WhenFull::Wait), Just(WhenFull::WaitUntil(end)), Just(WhenFull::Fail)];
    prop_oneof![
        3 => (when_full, any::<bool>(), any::<bool>()).prop_map(
            |(when_full, has_outcome, is_old)| Step::Submit { when_full, has_outcome, is_old }
        ),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(which, kill)| Step::Want { which, kill }),
        6 => (any::<usize>(), any::<bool>())
            .prop_map(|(which, is_lost)| Step::Arrive { which, is_lost }),
        3 => (any::<usize>(), any::<bool>()).prop_map(|(which, acks)| Step::Run { which, acks }),
        1 => any::<usize>().prop_map(|which| Step::Lose { which }),
        1 => Just(Step::Wait),
    ]
}

impl Machine {
    /// Checks that the parts of the state agree.
    fn sanity_check(&self) {
        let wanted: BTreeSet<_> = self
            .submissions
            .iter()
            .filter_map(|(ticket, submission)| Some((submission.waits_until()?, *ticket)))
            .collect();
        assert_eq!(self.waiting, wanted);
        for (ticket, submission) in &self.submissions {
            assert!(!submission.is_over(), "{ticket} is over and not forgotten");
            let is_ended = submission.end == EndHalf::Recorded;
            assert!(!is_ended || submission.is_complete, "{ticket} is ended but not complete");
            assert!(!(is_ended && submission.waits_until().is_some()), "{ticket} waits for room");
        }
    }
}

struct World {
    machine: Machine,
    model: Model,
    now: Monotonic,
}

impl World {
    fn handle(&mut self, ticket: Ticket, fact: Fact, is_lost: bool) {
        let mut actions = Vec::new();
        self.machine.handle(self.now, Event::Fact(ticket, fact), &mut actions);
        self.machine.sanity_check();
        self.model.carry_out(actions, is_lost);
    }

    fn run(&mut self, which: usize, acks: bool) {
        let Some(ticket) = self.model.queue.keys().nth(which).copied() else { return };
        let _ = self.model.record(ticket, Recorded::Value);
        if acks {
            self.model.queue.remove(&ticket);
        }
    }

    fn wait(&mut self) {
        self.now += MAX_PAUSE;
        let mut actions = Vec::new();
        self.machine.handle(self.now, Event::Tick, &mut actions);
        self.machine.sanity_check();
        self.model.carry_out(actions, false);
    }
}

proptest! {
    #[test]
    fn every_submission_has_the_recorded_outcome(
        steps in prop::collection::vec(step(), 0..120),
        room in 0..6_usize,
    ) {
        let model = Model { room, ..Model::default() };
        let mut world = World { machine: Machine::default(), model, now: Monotonic::ZERO };
        let mut submitted: Ticket = 0;
        for step in steps {
            match step {
                Step::Submit { when_full, has_outcome, is_old } => {
                    let ticket = submitted;
                    submitted += 1;
                    if is_old {
                        // An earlier run of the batch has published it, and perhaps more.
                        world.model.next_sequence += 1;
                        world.model.queue.insert(ticket, world.model.next_sequence);
                    }
                    if has_outcome && is_old {
                        world.model.outcomes.insert(ticket, Recorded::Value);
                    }
                    // An outcome that was known may be gone, so this may be wrong.
                    world.handle(ticket, Fact::Submitted { when_full, has_outcome }, false);
                }
                Step::Want { which, kill } => {
                    let ticket = which as u64 % (submitted + 1);
                    world.handle(ticket, Fact::EndWanted { kill }, which % 3 == 0);
                }
                Step::Arrive { which, is_lost } => {
                    if !world.model.mail.is_empty() {
                        let which = which % world.model.mail.len();
                        let (ticket, event) = world.model.mail.swap_remove(which);
                        world.handle(ticket, event, is_lost);
                    }
                }
                Step::Run { which, acks } => {
                    let count = world.model.queue.len().max(1);
                    world.run(which % count, acks);
                }
                Step::Lose { which } => {
                    let known = world.model.queue.keys().chain(world.model.outcomes.keys());
                    let known: Vec<Ticket> = known.copied().collect();
                    if !known.is_empty() {
                        world.model.lose(known[which % known.len()]);
                    }
                }
                Step::Wait => world.wait(),
            }
        }
        // Everything comes to its end: messages arrive, nodes work, queues empty.
        world.model.room = usize::MAX;
        for _ in 0..6 {
            world.wait();
            while !world.model.queue.is_empty() {
                world.run(0, true);
            }
            while let Some((ticket, event)) = world.model.mail.pop() {
                world.handle(ticket, event, false);
            }
        }
        let all: BTreeSet<Ticket> = (0..submitted).collect();
        prop_assert_eq!(world.model.forgotten, all);
        prop_assert!(world.machine.submissions.is_empty());
        prop_assert_eq!(world.machine.next_deadline(), None);
    }
}

#[test]
fn a_full_queue_gives_the_task_back_or_waits_longer_each_time() {
    let (mut machine, now) = (Machine::default(), Monotonic::ZERO);
    let mut actions = Vec::new();
    let submitted = |when_full| Fact::Submitted { when_full, has_outcome: false };
    machine.handle(now, Event::Fact(1, submitted(WhenFull::Fail)), &mut actions);
    machine.handle(now, Event::Fact(1, Fact::Published(Err(RefusalKind::Full))), &mut actions);
    let full = Action::Complete { ticket: 1, with: Completion::Full };
    assert_eq!(actions, [Action::Publish(1), full, Action::LeaveWindow(1), Action::Forget(1)]);
    // Another one waits, and is offered once more at the end of its time.
    let end = now + FIRST_PAUSE / 2;
    machine.handle(now, Event::Fact(4, submitted(WhenFull::WaitUntil(end))), &mut actions);
    machine.handle(now, Event::Fact(4, Fact::Published(Err(RefusalKind::Full))), &mut actions);
    assert_eq!(machine.next_deadline(), Some(end));
    machine.handle(end, Event::Tick, &mut actions);
    actions.clear();
    machine.handle(end, Event::Fact(4, Fact::Published(Err(RefusalKind::Full))), &mut actions);
    let full = Action::Complete { ticket: 4, with: Completion::Full };
    assert_eq!(actions, [full, Action::LeaveWindow(4), Action::Forget(4)]);
    machine.handle(now, Event::Fact(2, submitted(WhenFull::Wait)), &mut actions);
    machine.handle(now, Event::Fact(2, Fact::Published(Err(RefusalKind::Full))), &mut actions);
    assert_eq!(machine.next_deadline(), Some(now + FIRST_PAUSE));
    machine.handle(now + FIRST_PAUSE, Event::Tick, &mut actions);
    machine.handle(now, Event::Fact(2, Fact::Published(Err(RefusalKind::Full))), &mut actions);
    assert_eq!(machine.next_deadline(), Some(now + 2 * FIRST_PAUSE));
    // A task of this client leaves the queue, so there is room for another.
    machine.handle(now, Event::Fact(3, submitted(WhenFull::Wait)), &mut actions);
    machine.handle(now, Event::Fact(3, Fact::Published(Ok(9))), &mut actions);
    actions.clear();
    machine.handle(now, Event::Fact(3, Fact::Outcome), &mut actions);
    assert!(actions.ends_with(&[Action::Forget(3), Action::Publish(2)]), "{actions:?}");
    assert!(machine.waiting.is_empty());
}

#[test]
fn a_task_is_lost_after_two_searches_found_nothing() {
    let (mut machine, mut now) = (Machine::default(), Monotonic::ZERO);
    let mut actions = Vec::new();
    for ticket in [1, 2] {
        let submitted = Fact::Submitted { when_full: WhenFull::Wait, has_outcome: false };
        machine.handle(now, Event::Fact(ticket, submitted), &mut actions);
        let stored = Fact::Published(Ok(7 + ticket));
        machine.handle(now, Event::Fact(ticket, stored), &mut actions);
    }
    let searched = |actions: &[Action]| -> Vec<Ticket> {
        let ticket = |action: &Action| match action {
            Action::Search { ticket, is_published: true, sequence: Some(_), .. } => Some(*ticket),
            _ => None,
        };
        actions.iter().filter_map(ticket).collect()
    };
    let round = |machine: &mut Machine, now: &mut Monotonic, found: Found| {
        *now = machine.next_deadline().unwrap().max(*now);
        let mut actions = Vec::new();
        machine.handle(*now, Event::Tick, &mut actions);
        let all = searched(&actions);
        for ticket in &all {
            let found = if *ticket == 1 { Found::Task } else { found.clone() };
            machine.handle(*now, Event::Fact(*ticket, Fact::Searched(found)), &mut actions);
            machine.sanity_check();
        }
        (all, actions)
    };
    let nowhere = || Found::Nowhere("gone".to_owned());
    let begun = now;
    assert_eq!(round(&mut machine, &mut now, nowhere()).0, [1, 2]);
    assert_eq!(now, begun + searches::SEARCH_PERIOD);
    // Nothing else is lost, so the second search is a round later.
    assert_eq!(round(&mut machine, &mut now, nowhere()).0, [0; 0]);
    assert_eq!(round(&mut machine, &mut now, Found::Unknown).0, [2]);
    assert_eq!(now, begun + searches::SEARCH_PERIOD + searches::ROUND);
    let mut actions = Vec::new();
    for _ in 0..5 {
        let (_, next) = round(&mut machine, &mut now, nowhere());
        actions.extend(next);
    }
    let lost = Action::Complete { ticket: 2, with: Completion::Lost("gone".to_owned()) };
    assert!(actions.contains(&lost), "{actions:?}");
    assert!(actions.contains(&Action::Forget(2)), "{actions:?}");
    assert!(machine.is_incomplete(1));
}
