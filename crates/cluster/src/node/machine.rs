//! The decisions of a node: pure, without a connection, a clock or a thread.
//!
//! A task that the server delivers is *held* until it is acknowledged, returned, or lost with its
//! lease. On its way it is examined (if it may have been delivered before), run, and recorded. The
//! driver carries the actions out and reports their ends as events.
//!
//! Invariants:
//! - A task is acknowledged only after the stream of outcomes has answered that it has an outcome.
//! - A task is returned only after its history says so, and a task that was delivered before begins
//!   only after its history says so; so nothing but a death is counted as one.
//! - A history replaces only the one that the node has read, so that no report is lost.
//! - A task that was recorded as begun runs at once: its worker is reserved meanwhile, and no task
//!   is kept that needs more of a resource than is left.
//! - What runs at a time, and what waits for a worker, never exceeds the capacity by more than the
//!   deliveries of abandoned pulls.

mod cancellations;
mod capacity;
mod conflicts;
mod deaths;
mod event;
mod held;
mod leases;
mod pulls;
mod shares;
mod surplus;
mod suspects;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

pub(super) use self::event::{Action, Event, PullId, RunEnd, Settings, Token};
pub(super) use self::held::{Delivery, Facts};
pub(super) use self::pulls::HEARTBEAT;
use self::shares::NodeShares;

use self::cancellations::Cancellations;
use self::capacity::Capacity;
use self::held::{Held, State};
use self::pulls::Pulls;
use self::surplus::Review;
use crate::clock::Monotonic;
use crate::message::{History, Incident};
use crate::names::{Lane, TaskKey};

/// Number of deliveries to nodes without the function before the task fails. Together with the
/// pause, this is the time for which old and new nodes may run side by side.
pub(super) const UNKNOWN_LIMIT: u64 = 30;

/// Maximum number of functions that a history lists.
const NAMES_LIMIT: usize = 16;

/// The pause before a task is delivered again whose function is unknown.
const UNKNOWN_PAUSE: Duration = Duration::from_secs(1);

/// Number of outcomes that may wait for their answer. Beyond it, no more tasks are taken.
const RECORDING_LIMIT: usize = 4096;

/// The decisions of a node.
#[derive(Debug)]
pub(super) struct Machine {
    settings: Settings,
    held: BTreeMap<Token, Held>,
    /// The last delivery of each task that is held.
    by_key: HashMap<TaskKey, Token>,
    cancellations: Cancellations,
    pulls: Pulls,
    capacity: Capacity,
    shares: NodeShares,
    /// Number of tasks in the state `Recording`, which occupy no worker.
    recording: usize,
    /// Tasks in the state `Waiting`.
    waiting: BTreeSet<Token>,
    next_extension: Monotonic,
    /// The next look at the tasks that wait for a worker, if there are any.
    review: Option<Review>,
    is_up: bool,
    is_draining: bool,
    counts: NodeCounts,
    actions: Vec<Action>,
}

/// Numbers for the status of the node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct NodeCounts {
    pub(super) returned: u64,
    pub(super) given_up: u64,
    pub(super) worker_deaths: u64,
}

impl Machine {
    pub(super) fn new(settings: Settings, now: Monotonic) -> Self {
        Self {
            capacity: Capacity::new(settings.workers, settings.has_backlog),
            shares: NodeShares::new(settings.resources.clone()),
            next_extension: now + settings.lease / 3,
            review: None,
            recording: 0,
            waiting: BTreeSet::new(),
            held: BTreeMap::new(),
            by_key: HashMap::new(),
            cancellations: Cancellations::default(),
            pulls: Pulls::default(),
            is_up: true,
            is_draining: false,
            counts: NodeCounts::default(),
            actions: Vec::new(),
            settings,
        }
    }

    /// Takes an event at a time, which never decreases, and appends the actions that follow.
    pub(super) fn handle(&mut self, now: Monotonic, event: Event, actions: &mut Vec<Action>) {
        // First, so that a node that was stopped for long knows which leases it has lost.
        if now >= self.next_extension {
            self.extend_leases(now);
        }
        match event {
            Event::Lanes(lanes) => self.pulls.add_lanes(lanes),
            Event::LeaderChanged(lane) => self.pulls.leader_changed(&lane),
            Event::Link { is_up } => {
                self.is_up = is_up;
                // Requests of before are unknown to the server, or to the connection.
                self.pulls.abandon_all();
            }
            Event::Delivered(delivery) => self.delivered(now, delivery),
            Event::Heartbeat(pull) => self.pulls.heartbeat(now, pull),
            Event::PullEnded { pull, has_failed } => self.pulls.ended(now, pull, has_failed),
            Event::Examined { token, is_done, history, revision } => {
                self.examined(now, token, is_done, (history, revision));
            }
            Event::Ran { token, end } => self.ran(now, token, end),
            Event::Recorded(token) => self.recorded(now, token),
            Event::Outdated(token) => self.outdated(token),
            Event::NotRecorded(token) => self.not_recorded(now, token),
            Event::Cancelled { key, kill } => self.cancelled(&key, kill),
            Event::Drain => self.drain(),
            Event::Tick => {}
        }
        self.begin_waiting(now);
        self.review_backlog(now);
        self.pulls.expire(now);
        self.pull(now);
        actions.append(&mut self.actions);
    }

    /// Returns the time at which [`Event::Tick`] is due.
    pub(super) fn next_deadline(&self) -> Option<Monotonic> {
        let review = self.review.map(|review| review.at);
        let all = [Some(self.next_extension), self.pulls.next_expiry(), review];
        all.into_iter().flatten().min()
    }

    /// Returns the number of tasks that are held.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns the number of workers that run a task.
    pub(super) fn running(&self) -> u32 {
        self.capacity.running().min(self.settings.workers)
    }

    /// Returns the number of tasks that were asked for and have not come.
    pub(super) fn requested(&self) -> u64 {
        self.pulls.left()
    }

    /// Returns `true` if the node drains and holds nothing.
    pub(super) fn is_drained(&self) -> bool {
        self.is_draining && self.held.is_empty()
    }

    pub(super) fn is_draining(&self) -> bool {
        self.is_draining
    }

    pub(super) fn counts(&self) -> NodeCounts {
        self.counts
    }

    fn delivered(&mut self, now: Monotonic, delivery: Delivery) {
        let Delivery { token, lane, key, id, mut facts } = delivery;
        self.pulls.delivered(now, &lane);
        facts.may_be_done |= self.cancellations.contains(&key);
        self.shares.take(&lane.class);
        let held = Held::new(key, id, facts, now);
        let must_examine = held.must_examine();
        let earlier = self.by_key.insert(held.key.clone(), token);
        let held = Held { is_repeated: earlier.is_some(), share: Some(lane.class), ..held };
        self.held.insert(token, held);
        if must_examine {
            // Also while draining, because only the history says how often it was returned before.
            self.actions.push(Action::Examine(token));
        } else {
            self.decide(now, token);
        }
    }

    fn examined(&mut self, now: Monotonic, token: Token, is_done: bool, found: (History, u64)) {
        let Some(held) = self.held.get_mut(&token) else { return };
        match held.state {
            State::Examining if is_done || held.is_cancelled => self.acknowledge(token),
            State::Examining => {
                (held.history, held.revision) = found;
                self.decide(now, token);
            }
            State::Beginning | State::Returning { .. } => {
                self.decide_again(now, token, is_done, found);
            }
            _ => {}
        }
    }

    /// Decides what becomes of a task without an outcome that does not run.
    fn decide(&mut self, now: Monotonic, token: Token) {
        let Some(held) = self.held.get_mut(&token) else { return };
        let deaths = held.history.deaths_before(held.delivery);
        if deaths >= held.facts.max_deaths {
            return self.give_up(token, deaths);
        }
        if self.is_draining {
            return self.hand_back(token, Incident::HandedBack, Duration::ZERO);
        }
        if !held.facts.is_known {
            if held.history.unknown >= UNKNOWN_LIMIT && !held.facts.is_readable {
                return self.give_up(token, deaths);
            }
            if held.history.unknown >= UNKNOWN_LIMIT {
                return self.record(token, Action::RecordUnknown(token));
            }
            let known = self.settings.functions.iter().take(NAMES_LIMIT).cloned();
            let names = known.filter(|_| held.facts.is_readable).collect();
            return self.hand_back(token, Incident::UnknownTask(names), UNKNOWN_PAUSE);
        }
        let has_too_little =
            held.share.as_ref().is_some_and(|class| self.shares.is_exceeded(class));
        if has_too_little || self.capacity.is_exceeded(self.waiting.len()) {
            return self.hand_back(token, Incident::HandedBack, Duration::ZERO);
        }
        if held.is_suspect() || !self.waiting.is_empty() || !self.capacity.has_place() {
            held.state = State::Waiting;
            self.waiting.insert(token);
            return;
        }
        self.run(now, token);
    }

    fn ran(&mut self, now: Monotonic, token: Token, end: RunEnd) {
        let is_running = |held: &&mut Held| held.state == State::Running;
        let Some(held) = self.held.get_mut(&token).filter(is_running) else {
            return;
        };
        self.capacity.ended(now, matches!(end, RunEnd::Done));
        let (is_cancelled, is_lost) = (held.is_cancelled, held.is_lost);
        if is_cancelled {
            return self.acknowledge(token);
        }
        match end {
            RunEnd::Done => self.record(token, Action::RecordOutcome(token)),
            // Whoever has it now counts this delivery as a death, which needs no report.
            RunEnd::NotBegun | RunEnd::Died(_) | RunEnd::Failed(_) if is_lost => {
                self.forget(token);
            }
            RunEnd::NotBegun => self.hand_back(token, Incident::HandedBack, Duration::ZERO),
            RunEnd::Died(description) => {
                self.counts.worker_deaths += 1;
                self.attempt_failed(token, Incident::WorkerDied(description));
            }
            RunEnd::Failed(description) => {
                self.attempt_failed(token, Incident::Failed(description));
            }
        }
    }

    /// Lets an outcome be recorded.
    fn record(&mut self, token: Token, action: Action) {
        if let Some(held) = self.held.get_mut(&token) {
            held.state = State::Recording;
            self.recording += 1;
            self.actions.push(action);
            self.give_back(token);
        }
    }

    fn give_up(&mut self, token: Token, deaths: u64) {
        let Some(held) = self.held.get_mut(&token) else { return };
        self.counts.given_up += 1;
        held.state = State::GivingUp { deaths };
        let history = held.history.clone();
        self.actions.push(Action::RecordDead { token, deaths, history });
        self.give_back(token);
    }

    fn hand_back(&mut self, token: Token, incident: Incident, pause: Duration) {
        let Some(held) = self.held.get_mut(&token) else { return };
        let report = held.report(&self.settings.name, incident);
        held.history.add(held.delivery, report.clone());
        held.report = Some(report);
        held.state = State::Returning { pause };
        let (history, revision) = (held.history.clone(), held.revision);
        self.actions.push(Action::RecordReturn { token, history, revision });
        self.give_back(token);
    }

    fn recorded(&mut self, now: Monotonic, token: Token) {
        let Some(held) = self.held.get_mut(&token) else { return };
        match held.state {
            State::Recording => self.acknowledge(token),
            State::GivingUp { deaths } => {
                self.record(token, Action::RecordGivenUp { token, deaths });
            }
            // Somebody else has it by now: to return it would take it from them.
            State::Returning { .. } if held.is_overdue(now, self.settings.lease) => {
                self.forget(token);
            }
            State::Returning { pause } => {
                self.counts.returned += 1;
                self.remove(token);
                self.actions.push(Action::Return { token, pause });
            }
            State::Beginning => self.begun(now, token),
            State::Examining | State::Waiting | State::Running => {}
        }
    }

    /// A record that the stream does not take. The lease runs out, and another node tries.
    fn not_recorded(&mut self, now: Monotonic, token: Token) {
        let Some(held) = self.held.get(&token) else { return };
        if held.state == State::Beginning {
            self.capacity.release(now);
        }
        self.forget(token);
    }

    fn drain(&mut self) {
        if self.is_draining {
            return;
        }
        self.is_draining = true;
        let running = self.held.iter().filter(|(_, held)| held.state == State::Running);
        let stops = running.map(|(token, _)| Action::Stop { token: *token, kill: false });
        self.actions.extend(stops);
        for token in std::mem::take(&mut self.waiting) {
            self.hand_back(token, Incident::HandedBack, Duration::ZERO);
        }
    }

    fn pull(&mut self, now: Monotonic) {
        if !self.is_up || self.is_draining || self.recording >= RECORDING_LIMIT {
            return;
        }
        // Other tasks would take the workers from those that wait.
        if !self.waiting.is_empty() {
            return;
        }
        let occupied = u32::try_from(self.held.len() - self.recording).unwrap_or(u32::MAX);
        let capacity = self.capacity.tasks();
        let free = capacity.saturating_sub(occupied);
        // A pull for each task that ends would cost more than brief tasks do.
        let is_busy = occupied >= self.settings.workers && free < capacity.div_ceil(4);
        if free == 0 || is_busy {
            return;
        }
        let room = |lane: &Lane| self.shares.room(&lane.class).min(free);
        self.pulls.pull(now, room, &mut self.actions);
    }

    fn acknowledge(&mut self, token: Token) {
        self.remove(token);
        self.actions.push(Action::Acknowledge(token));
    }

    fn forget(&mut self, token: Token) {
        self.remove(token);
        self.actions.push(Action::Forget(token));
    }

    fn remove(&mut self, token: Token) {
        self.give_back(token);
        let Some(held) = self.held.remove(&token) else { return };
        self.waiting.remove(&token);
        if held.state == State::Recording {
            self.recording -= 1;
        }
        if self.by_key.get(&held.key) == Some(&token) {
            let earlier = if held.is_repeated { self.tokens_of(&held.key).pop() } else { None };
            match earlier {
                Some(earlier) => self.by_key.insert(held.key, earlier),
                None => self.by_key.remove(&held.key),
            };
        }
    }
}

#[cfg(test)]
mod tests;
