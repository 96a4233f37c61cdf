//! A task that the node holds.

use std::time::Duration;

use brigade_task::Retry;

use super::Token;
use crate::clock::Monotonic;
use crate::message::{DeliveryId, History, Incident, Report};
use crate::names::{Lane, TaskKey};
use crate::requirements::Class;

/// A task as the server delivered it.
#[derive(Debug, Clone)]
pub(in crate::node) struct Delivery {
    pub(in crate::node) token: Token,
    pub(in crate::node) lane: Lane,
    pub(in crate::node) key: TaskKey,
    pub(in crate::node) id: DeliveryId,
    pub(in crate::node) facts: Facts,
}

/// The properties of a task that decisions depend on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::node) struct Facts {
    /// `false` if the message is of another version, or malformed.
    pub(in crate::node) is_readable: bool,
    /// `true` if the node has the function.
    pub(in crate::node) is_known: bool,
    /// The attempts, and the pauses between them.
    pub(in crate::node) retry: Retry,
    /// Number of deaths after which the task is given up.
    pub(in crate::node) max_deaths: u64,
    /// `true` if there may be an outcome although this is the first delivery.
    pub(in crate::node) may_be_done: bool,
}

/// A task that the node holds.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) key: TaskKey,
    pub(super) delivery: DeliveryId,
    pub(super) facts: Facts,
    /// The requirements, until its run has ended or the node has decided not to run it.
    pub(super) share: Option<Class>,
    pub(super) history: History,
    /// The history that the next one replaces; 0 if there is none.
    pub(super) revision: u64,
    /// The end of the delivery, which is being recorded.
    pub(super) report: Option<Report>,
    pub(super) state: State,
    /// Time from which the lease counts.
    pub(super) extended: Monotonic,
    /// `true` if the lease has run out.
    pub(super) is_lost: bool,
    /// `true` if somebody else has recorded the outcome.
    pub(super) is_cancelled: bool,
    /// `true` if the node held an earlier delivery of the task when this one came.
    pub(super) is_repeated: bool,
}

/// The stage of a task that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// An outcome and a history are looked for.
    Examining,
    /// It waits: if it was delivered before, for a free worker, else for its turn behind such a
    /// task.
    Waiting,
    /// The record that it begins is on its way to the server. Its worker is reserved.
    Beginning,
    /// It runs, or waits in the backlog of the pool.
    Running,
    /// Its outcome is on its way to the server.
    Recording,
    /// Its dead letter is on its way to the server.
    GivingUp { deaths: u64 },
    /// Its history is on its way to the server.
    Returning { pause: Duration },
}

impl Held {
    pub(super) fn new(key: TaskKey, delivery: DeliveryId, facts: Facts, now: Monotonic) -> Self {
        Self {
            key,
            delivery,
            facts,
            share: None,
            history: History::default(),
            revision: 0,
            report: None,
            state: State::Examining,
            extended: now,
            is_lost: false,
            is_cancelled: false,
            is_repeated: false,
        }
    }

    /// Returns the report of this delivery.
    pub(super) fn report(&self, node: &str, incident: Incident) -> Report {
        Report { node: node.to_owned(), incident, delivery: self.delivery.number }
    }

    /// Returns `true` if somebody else may have the task by now.
    pub(super) fn is_overdue(&self, now: Monotonic, lease: Duration) -> bool {
        self.is_lost || now.saturating_since(self.extended) >= lease
    }

    /// Returns `true` if an earlier delivery may have killed its node.
    pub(super) fn is_suspect(&self) -> bool {
        self.delivery.number > 1
    }

    /// Returns `true` if the task may have an outcome or a history.
    pub(super) fn must_examine(&self) -> bool {
        self.is_suspect() || self.facts.may_be_done
    }
}
