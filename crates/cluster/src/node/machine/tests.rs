//! Two nodes against a model of the server: deliveries, deaths, redeliveries, lost links, drains,
//! stale acknowledgments, and acknowledgments that a crash of the server undoes.

mod directed;

use std::collections::{BTreeMap, BTreeSet};

use brigade_task::Retry;
use brigade_testkit::repetitions;
use proptest::prelude::*;

use super::*;
use crate::message::DeliveryId;
use crate::names::{ItemId, Lane, Origin, Priority};
use crate::requirements::Class;

const LEASE: Duration = Duration::from_secs(10);
const MAX_DEATHS: u64 = 3;

/// A task in the queue of the server.
#[derive(Debug, Clone, Default)]
struct Queued {
    deliveries: u64,
    /// The time at which it is delivered again; `None` before the first delivery.
    due: Option<Monotonic>,
    /// Deliveries that were recorded as begun.
    begun: BTreeSet<u64>,
    /// Deliveries whose end was reported.
    reported: BTreeSet<u64>,
    /// Deliveries in which the worker died.
    worker_deaths: BTreeSet<u64>,
}

impl Queued {
    /// Returns the number of deliveries that ended with a death of a worker, a node or a lease.
    /// Counts the first delivery, of which no record says that it has begun.
    fn deaths(&self) -> usize {
        let is_over = |delivery: &u64| *delivery < self.deliveries;
        let mut deaths: BTreeSet<u64> = self.begun.iter().copied().chain([1]).collect();
        deaths.retain(|delivery| is_over(delivery) && !self.reported.contains(delivery));
        deaths.extend(&self.worker_deaths);
        deaths.len()
    }
}

/// An outcome, with the deaths until then.
#[derive(Debug)]
struct Recorded {
    is_given_up: bool,
    deaths: usize,
}

#[derive(Debug, Default)]
struct Server {
    now: Monotonic,
    queue: BTreeMap<u64, Queued>,
    outcomes: BTreeMap<u64, Recorded>,
    /// Each with its revision, which is the number of histories until then.
    histories: BTreeMap<u64, (History, u64)>,
    last_revision: u64,
    dead: BTreeSet<u64>,
    /// Tasks that were acknowledged; a crash may bring them back.
    acknowledged: Vec<u64>,
}

struct Node {
    machine: Machine,
    pulls: Vec<(PullId, Lane, u32, bool)>,
    /// The task and the number of its delivery.
    held: BTreeMap<Token, (u64, u64)>,
    /// Likewise, of all deliveries.
    delivered: BTreeMap<Token, (u64, u64)>,
    running: Vec<Token>,
    /// Runs that were stopped; the machine hears of it when its actions are carried out.
    stopped: Vec<(Token, RunEnd)>,
    examining: Vec<Token>,
    recording: Vec<(Token, Record)>,
    /// Tasks that the machine knows to have an outcome.
    known_done: BTreeSet<Token>,
}

#[derive(Clone)]
enum Record {
    Outcome { is_given_up: bool },
    Dead,
    Begin(History, u64),
    Return(History, u64),
}

/// A step of the world.
#[derive(Debug, Clone)]
enum Step {
    Submit { count: u64 },
    Deliver { node: usize },
    EndPull { node: usize, has_failed: bool },
    Examine { node: usize },
    Finish { node: usize, nth: usize },
    KillWorker { node: usize, nth: usize },
    Store { node: usize, loses_answer: bool },
    Cancel { task: u64, kill: bool },
    Pass { seconds: u64 },
    KillNode { node: usize },
    Unlink { node: usize },
    Link { node: usize },
    Drain { node: usize },
    CrashServer,
}

fn step() -> impl Strategy<Value = Step> {
    let node = 0..2_usize;
    prop_oneof![
        3 => (1..5_u64).prop_map(|count| Step::Submit { count }),
        12 => node.clone().prop_map(|node| Step::Deliver { node }),
        3 => (node.clone(), any::<bool>()).prop_map(|(node, has_failed)| Step::EndPull { node, has_failed }),
        6 => node.clone().prop_map(|node| Step::Examine { node }),
        8 => (node.clone(), 0..8_usize).prop_map(|(node, nth)| Step::Finish { node, nth }),
        2 => (node.clone(), 0..8_usize).prop_map(|(node, nth)| Step::KillWorker { node, nth }),
        10 => (node.clone(), proptest::bool::weighted(0.2))
            .prop_map(|(node, loses_answer)| Step::Store { node, loses_answer }),
        1 => (0..40_u64, any::<bool>()).prop_map(|(task, kill)| Step::Cancel { task, kill }),
        4 => (0..14_u64).prop_map(|seconds| Step::Pass { seconds }),
        1 => node.clone().prop_map(|node| Step::KillNode { node }),
        1 => node.clone().prop_map(|node| Step::Unlink { node }),
        2 => node.clone().prop_map(|node| Step::Link { node }),
        1 => node.prop_map(|node| Step::Drain { node }),
        1 => Just(Step::CrashServer),
    ]
}

/// Number of workers of each node.
const WORKERS: usize = 2;

/// Number of licenses of each node.
const LICENSES: u64 = 3;

fn licenses() -> BTreeMap<String, u64> {
    BTreeMap::from([("licenses".to_owned(), LICENSES)])
}

/// Tasks of high and of low priority need licenses.
fn lane(priority: Priority) -> Lane {
    let class = match licenses_of(priority) {
        0 => Class::default(),
        amount => format!("licenses={amount}").parse().unwrap(),
    };
    Lane { priority, class }
}

fn licenses_of(priority: Priority) -> u64 {
    match priority {
        Priority::High => 1,
        Priority::Normal => 0,
        Priority::Low => 2,
    }
}

fn key(task: u64) -> TaskKey {
    TaskKey { origin: Origin::batch("b").unwrap(), item: ItemId::number(task) }
}

/// A task of the model is published once.
fn id(task: u64, number: u64) -> DeliveryId {
    DeliveryId { message: task + 1, number }
}

/// Every third task survives two deaths of its worker.
fn facts(task: u64) -> Facts {
    let retries = if task.is_multiple_of(3) { 2 } else { 0 };
    let may_be_done = task.is_multiple_of(7);
    let retry = Retry::of(retries);
    Facts { is_readable: true, is_known: true, retry, max_deaths: MAX_DEATHS, may_be_done }
}

fn lane_of(task: u64) -> Lane {
    lane(match task % 4 {
        0 | 2 => Priority::High,
        1 => Priority::Normal,
        _ => Priority::Low,
    })
}

impl Node {
    fn start(world: &mut Server, index: usize) -> Self {
        let settings = Settings {
            has_backlog: true,
            name: format!("node-{index}"),
            workers: u32::try_from(WORKERS).unwrap(),
            resources: licenses(),
            lease: LEASE,
            functions: Vec::new(),
        };
        let mut node = Self {
            machine: Machine::new(settings, Monotonic::ZERO),
            pulls: Vec::new(),
            held: BTreeMap::new(),
            delivered: BTreeMap::new(),
            running: Vec::new(),
            stopped: Vec::new(),
            examining: Vec::new(),
            recording: Vec::new(),
            known_done: BTreeSet::new(),
        };
        if index == 1 {
            // It knows that tasks are brief, and has a backlog.
            let capacity = &mut node.machine.capacity;
            for _ in 0..16 {
                capacity.started(Monotonic::ZERO);
                capacity.ended(Monotonic::ZERO, true);
            }
            assert!(capacity.tasks() as usize > WORKERS);
        }
        let lanes = [Priority::Normal, Priority::High, Priority::Low].map(lane).to_vec();
        node.handle(world, Event::Lanes(lanes));
        node
    }

    fn handle(&mut self, server: &mut Server, event: Event) {
        let mut actions = Vec::new();
        self.machine.handle(server.now, event, &mut actions);
        for action in actions {
            self.carry_out(server, action);
        }
        assert_eq!(self.machine.held(), self.held.len());
        self.machine.sanity_check();
        for (token, end) in std::mem::take(&mut self.stopped) {
            self.end(server, token, end);
        }
    }

    fn carry_out(&mut self, server: &mut Server, action: Action) {
        match action {
            Action::Pull { pull, lane, batch, wait } => {
                assert!(batch > 0);
                let asked = licenses_of(lane.priority) * u64::from(batch);
                let needed = self.licenses_of(self.running.iter());
                assert!(asked == 0 || needed + asked <= LICENSES, "it has too few");
                self.pulls.push((pull, lane, batch, wait.is_some()));
            }
            Action::Examine(token) => self.examining.push(token),
            Action::Run(token) => {
                assert!(!self.known_done.contains(&token), "there is an outcome");
                let (task, delivery) = self.held[&token];
                if delivery > 1 {
                    // What runs without a record is not counted when its node dies.
                    let queued = server.queue.get(&task);
                    let is_begun = queued.is_none_or(|queued| queued.begun.contains(&delivery));
                    assert!(is_begun, "not recorded");
                    let deaths = queued.map_or(0, Queued::deaths) as u64;
                    assert!(deaths < MAX_DEATHS, "begun after {deaths} deaths");
                    assert!(self.running.len() < WORKERS, "recorded as begun, but waits");
                    let tasks = self.running.iter().chain([&token]);
                    assert!(self.licenses_of(tasks) <= LICENSES, "begun, but waits for licenses");
                }
                self.running.push(token);
            }
            Action::Stop { token, kill: true } => {
                self.stopped.push((token, RunEnd::Died("killed".into())));
            }
            // The last ones have not begun.
            Action::Stop { token, kill: false } => {
                if self.running.iter().position(|other| *other == token) >= Some(WORKERS) {
                    self.stopped.push((token, RunEnd::NotBegun));
                }
            }
            Action::RecordOutcome(token) | Action::RecordUnknown(token) => {
                self.recording.push((token, Record::Outcome { is_given_up: false }));
            }
            Action::RecordGivenUp { token, deaths } => {
                assert!(deaths >= MAX_DEATHS);
                self.recording.push((token, Record::Outcome { is_given_up: true }));
            }
            Action::RecordDead { token, .. } => self.recording.push((token, Record::Dead)),
            Action::RecordBegin { token, history, revision } => {
                self.recording.push((token, Record::Begin(history, revision)));
            }
            Action::RecordReturn { token, history, revision } => {
                self.recording.push((token, Record::Return(history, revision)));
            }
            Action::Extend(token) => {
                let (task, delivery) = self.held[&token];
                if let Some(queued) = server.queue.get_mut(&task)
                    && queued.deliveries == delivery
                {
                    queued.due = Some(server.now + LEASE);
                }
            }
            Action::Acknowledge(token) => {
                let (task, _) = self.held.remove(&token).expect("held");
                // Also of a stale delivery: the server does not compare them.
                if server.queue.remove(&task).is_some() {
                    assert!(server.outcomes.contains_key(&task), "acknowledged without an outcome");
                    server.acknowledged.push(task);
                }
            }
            Action::Return { token, pause } => {
                let (task, delivery) = self.held.remove(&token).expect("held");
                if let Some(queued) = server.queue.get_mut(&task) {
                    let is_done = server.outcomes.contains_key(&task);
                    assert!(queued.deliveries == delivery || is_done, "taken from another node");
                    queued.due = Some(server.now + pause);
                }
            }
            Action::Forget(token) => {
                self.held.remove(&token).expect("held");
            }
        }
    }

    /// Returns the number of licenses that tasks need.
    fn licenses_of<'a>(&self, tokens: impl Iterator<Item = &'a Token>) -> u64 {
        tokens.map(|token| licenses_of(lane_of(self.delivered[token].0).priority)).sum()
    }

    fn end(&mut self, server: &mut Server, token: Token, end: RunEnd) {
        let Some(position) = self.running.iter().position(|other| *other == token) else { return };
        self.running.remove(position);
        if matches!(end, RunEnd::Died(_)) {
            let (task, delivery) = self.held[&token];
            if let Some(queued) = server.queue.get_mut(&task) {
                queued.worker_deaths.insert(delivery);
            }
        }
        self.handle(server, Event::Ran { token, end });
    }

    fn deliver(&mut self, server: &mut Server, next_token: &mut u64) {
        for index in 0..self.pulls.len() {
            let (_, lane, _, _) = &self.pulls[index];
            let now = server.now;
            let is_due = |task: u64, queued: &Queued| {
                lane_of(task) == *lane && queued.due.is_none_or(|due| due <= now)
            };
            let task = server.queue.iter().find(|(task, queued)| is_due(**task, queued));
            let Some(task) = task.map(|(task, _)| *task) else { continue };
            let lane = lane.clone();
            self.pulls[index].2 -= 1;
            if self.pulls[index].2 == 0 {
                self.pulls.remove(index);
            }
            *next_token += 1;
            let token = Token(*next_token);
            let queued = server.queue.get_mut(&task).unwrap();
            queued.deliveries += 1;
            queued.due = Some(now + LEASE);
            let number = queued.deliveries;
            self.held.insert(token, (task, number));
            self.delivered.insert(token, (task, number));
            let (id, key) = (id(task, number), key(task));
            let delivery = Delivery { token, lane, key, id, facts: facts(task) };
            return self.handle(server, Event::Delivered(delivery));
        }
    }

    fn end_pull(&mut self, server: &mut Server, has_failed: bool) {
        if !self.pulls.is_empty() {
            let (pull, ..) = self.pulls.remove(0);
            self.handle(server, Event::PullEnded { pull, has_failed });
        }
    }

    fn examine(&mut self, server: &mut Server) {
        if !self.examining.is_empty() {
            let token = self.examining.remove(0);
            // The machine may have let go of it.
            let Some((task, _)) = self.held.get(&token).copied() else { return };
            let is_done = server.outcomes.contains_key(&task);
            let (history, revision) = server.histories.get(&task).cloned().unwrap_or_default();
            if is_done {
                self.known_done.insert(token);
            }
            self.handle(server, Event::Examined { token, is_done, history, revision });
        }
    }

    /// Stores the next record. Without an answer, it is sent again later, although the node may
    /// hold the task no more.
    fn store(&mut self, server: &mut Server, loses_answer: bool) {
        if self.recording.is_empty() {
            return;
        }
        let (token, record) = self.recording[0].clone();
        let Some((task, delivery)) = self.delivered.get(&token).copied() else { return };
        let is_stored = server.store(task, delivery, record);
        if !loses_answer {
            self.recording.remove(0);
            let event = if is_stored { Event::Recorded(token) } else { Event::Outdated(token) };
            self.handle(server, event);
        }
    }
}

impl Server {
    /// Returns `false` if the record was to replace a history that is not the last one.
    fn store(&mut self, task: u64, delivery: u64, record: Record) -> bool {
        let queued = self.queue.get_mut(&task);
        let last = self.histories.get(&task).map_or(0, |(_, revision)| *revision);
        match record {
            Record::Outcome { is_given_up } => {
                let deaths = queued.map_or(usize::MAX, |queued| queued.deaths());
                self.outcomes.entry(task).or_insert(Recorded { is_given_up, deaths });
            }
            Record::Dead => {
                self.dead.insert(task);
            }
            Record::Begin(_, revision) | Record::Return(_, revision) if revision != last => {
                return false;
            }
            Record::Begin(history, _) => {
                if let Some(queued) = queued {
                    queued.begun.insert(delivery);
                }
                self.replace(task, history);
            }
            Record::Return(history, _) => {
                if let Some(queued) = queued {
                    queued.reported.insert(delivery);
                }
                self.replace(task, history);
            }
        }
        true
    }

    fn replace(&mut self, task: u64, history: History) {
        self.last_revision += 1;
        self.histories.insert(task, (history, self.last_revision));
    }
}

impl Machine {
    /// Checks that the parts of the state agree.
    fn sanity_check(&self) {
        let count = |state: State| self.held.values().filter(|held| held.state == state).count();
        assert_eq!(self.recording, count(State::Recording));
        assert_eq!(self.waiting.len(), count(State::Waiting));
        for token in &self.waiting {
            assert_eq!(self.held[token].state, State::Waiting);
        }
        let mut shares = NodeShares::new(self.settings.resources.clone());
        for class in self.held.values().filter_map(|held| held.share.as_ref()) {
            shares.take(class);
        }
        let class = lane(Priority::High).class;
        assert_eq!(self.shares.room(&class), shares.room(&class));
        let occupied = count(State::Running) + count(State::Beginning);
        assert_eq!(self.capacity.running() as usize, occupied);
        // What was recorded as begun finds a worker and resources.
        let is_reserved = count(State::Beginning) > 0;
        assert!(!is_reserved || occupied <= self.settings.workers as usize, "a worker is missing");
        let is_kept = |state| matches!(state, State::Waiting | State::Beginning | State::Running);
        let kept = self.held.values().filter(|held| is_kept(held.state));
        let needed = kept.map(|held| {
            let class = held.share.as_ref().expect("until its run has ended").requirements();
            class.resources().map(|(_, amount)| amount).sum::<u64>()
        });
        assert!(needed.sum::<u64>() <= LICENSES, "a license is missing");
        assert!(self.waiting.is_empty() || occupied >= self.settings.workers as usize);
        assert!(!self.is_draining || self.waiting.is_empty());
        for (key, token) in &self.by_key {
            assert_eq!(self.held[token].key, *key);
        }
        for held in self.held.values() {
            assert!(self.by_key.contains_key(&held.key), "a cancellation would miss it");
            let is_idle = matches!(held.state, State::Examining | State::Waiting);
            assert!(!(held.is_lost && is_idle), "somebody else has it");
            let runs = matches!(held.state, State::Beginning | State::Running);
            if runs && held.is_suspect() {
                assert!(held.history.begun >= Some(held.delivery));
            }
        }
    }
}

struct World {
    server: Server,
    nodes: Vec<Node>,
    submitted: u64,
    next_token: u64,
}

impl World {
    fn new() -> Self {
        let mut server = Server::default();
        let nodes = (0..2).map(|index| Node::start(&mut server, index)).collect();
        Self { server, nodes, submitted: 0, next_token: 0 }
    }

    fn take(&mut self, step: &Step) {
        let Self { server, nodes, submitted, next_token } = self;
        match *step {
            Step::Submit { count } => {
                for task in *submitted..*submitted + count {
                    server.queue.insert(task, Queued::default());
                }
                *submitted += count;
            }
            Step::Deliver { node } => nodes[node].deliver(server, next_token),
            Step::EndPull { node, has_failed } => nodes[node].end_pull(server, has_failed),
            Step::Examine { node } => nodes[node].examine(server),
            Step::Finish { node, nth } => {
                if let Some(token) = nodes[node].running.get(nth % 2).copied() {
                    nodes[node].end(server, token, RunEnd::Done);
                }
            }
            Step::KillWorker { node, nth } => {
                if let Some(token) = nodes[node].running.get(nth % 2).copied() {
                    nodes[node].end(server, token, RunEnd::Died("signal 9".into()));
                }
            }
            Step::Store { node, loses_answer } => nodes[node].store(server, loses_answer),
            Step::Cancel { task, kill } => {
                if server.queue.contains_key(&task) && !server.outcomes.contains_key(&task) {
                    let deaths = usize::MAX;
                    server.outcomes.insert(task, Recorded { is_given_up: false, deaths });
                    server.queue.remove(&task);
                    for node in nodes {
                        node.handle(server, Event::Cancelled { key: key(task), kill });
                    }
                }
            }
            Step::Pass { seconds } => {
                server.now += Duration::from_secs(seconds);
                for node in nodes {
                    node.handle(server, Event::Tick);
                }
            }
            Step::KillNode { node } => nodes[node] = Node::start(server, node),
            Step::Unlink { node } => {
                nodes[node].pulls.clear();
                nodes[node].handle(server, Event::Link { is_up: false });
            }
            Step::Link { node } => nodes[node].handle(server, Event::Link { is_up: true }),
            Step::Drain { node } => {
                nodes[node].handle(server, Event::Drain);
                assert!(nodes[node].pulls.is_empty() || nodes[node].machine.is_draining());
            }
            Step::CrashServer => {
                // The last acknowledgments are undone; outcomes are not.
                for task in server.acknowledged.split_off(server.acknowledged.len() / 2) {
                    server.queue.insert(task, Queued { deliveries: 1, ..Queued::default() });
                }
                for node in nodes {
                    node.pulls.clear();
                    node.handle(server, Event::Link { is_up: false });
                    node.handle(server, Event::Link { is_up: true });
                }
            }
        }
    }

    /// Lets everything end: nodes that drain are replaced once they hold nothing.
    fn settle(&mut self) {
        for node in 0..2 {
            self.take(&Step::Link { node });
        }
        for _ in 0..2_000 {
            for node in 0..2 {
                for _ in 0..4 {
                    self.take(&Step::Deliver { node });
                    self.take(&Step::Examine { node });
                    self.take(&Step::Store { node, loses_answer: false });
                    self.take(&Step::Finish { node, nth: 0 });
                }
                // The server answers those that do not wait.
                if let Some(index) = self.nodes[node].pulls.iter().position(|pull| !pull.3) {
                    let (pull, ..) = self.nodes[node].pulls.remove(index);
                    let ended = Event::PullEnded { pull, has_failed: false };
                    self.nodes[node].handle(&mut self.server, ended);
                }
                if self.nodes[node].machine.is_drained() {
                    self.nodes[node] = Node::start(&mut self.server, node);
                }
            }
            if self.server.queue.is_empty() && self.nodes.iter().all(|node| node.held.is_empty()) {
                return;
            }
            self.take(&Step::Pass { seconds: 2 });
        }
        panic!("tasks are left: {:?}", self.server.queue);
    }
}

/// Returns the number of scripts, which have 150 steps on average. `BRIGADE_NODE_STEPS` sets the
/// number of all steps.
fn scripts() -> ProptestConfig {
    let steps = std::env::var("BRIGADE_NODE_STEPS").ok();
    let cases = steps
        .map_or(repetitions(128), |steps| steps.parse::<u32>().expect("a number").div_ceil(150));
    ProptestConfig::with_cases(cases)
}

proptest! {
    #![proptest_config(scripts())]

    #[test]
    fn every_task_has_one_outcome_and_leaves_the_queue(
        steps in proptest::collection::vec(step(), 0..300)
    ) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
            for node in &world.nodes {
                // Abandoned pulls of a lost link may bring a few more.
                prop_assert!(node.running.len() <= 64, "{}", node.running.len());
            }
        }
        world.settle();
        prop_assert_eq!(world.server.outcomes.len() as u64, world.submitted);
        for (task, outcome) in &world.server.outcomes {
            if outcome.is_given_up {
                prop_assert!(world.server.dead.contains(task), "no dead letter of {}", task);
                prop_assert!(outcome.deaths as u64 >= MAX_DEATHS, "{} was given up after {:?}", task, outcome);
            }
        }
    }

    #[test]
    fn without_deaths_no_task_is_given_up(
        steps in proptest::collection::vec(step(), 0..300)
    ) {
        let harmless = |step: &&Step| !matches!(
            step,
            Step::KillNode { .. } | Step::KillWorker { .. } | Step::Unlink { .. } | Step::Cancel { .. }
                | Step::CrashServer | Step::Pass { .. }
        );
        let mut world = World::new();
        for step in steps.iter().filter(harmless) {
            world.take(step);
        }
        world.settle();
        prop_assert!(world.server.dead.is_empty());
    }
}
