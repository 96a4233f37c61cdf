//! Events that the machine takes, and actions that it answers with.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Delivery;
use crate::message::History;
use crate::names::{Lane, TaskKey};

/// The name by which machine and driver know a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::node) struct Token(pub(in crate::node) u64);

/// The name by which machine and driver know a request for tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::node) struct PullId(pub(in crate::node) u64);

/// Something that happened.
#[derive(Debug)]
pub(in crate::node) enum Event {
    /// Lanes exist whose tasks this node may run. All that are known come at once, so that the
    /// most urgent of them is asked first.
    Lanes(Vec<Lane>),
    /// The consumer of a lane has another leader, which does not know the requests of before.
    LeaderChanged(Lane),
    /// The connection was lost, or is there again.
    Link { is_up: bool },
    /// The server delivered a task.
    Delivered(Delivery),
    /// The server has not forgotten the request.
    Heartbeat(PullId),
    /// The request is over. `has_failed` unless it was served or there was nothing to deliver.
    PullEnded { pull: PullId, has_failed: bool },
    /// The examination of a task has ended. The revision is that of the history, or 0.
    Examined { token: Token, is_done: bool, history: History, revision: u64 },
    /// A run has ended.
    Ran { token: Token, end: RunEnd },
    /// A stream has stored the record, or has one already.
    Recorded(Token),
    /// The history was not stored, because somebody else has replaced the one that was read.
    Outdated(Token),
    /// A stream has refused the record for good.
    NotRecorded(Token),
    /// The outcome of a task was recorded by somebody who wants it not to run.
    Cancelled { key: TaskKey, kill: bool },
    /// No more tasks are to be taken.
    Drain,
    /// Time has passed.
    Tick,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::node) enum RunEnd {
    /// There is an outcome.
    Done,
    /// The worker died, as described.
    Died(String),
    /// The function failed, as described, in a way after which the task may run again.
    Failed(String),
    /// The run was cancelled before it began, or the pool has ended.
    NotBegun,
}

/// Something for the driver to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::node) enum Action {
    /// Ask for up to `batch` tasks of a lane, and wait for them if `wait` says how long.
    Pull { pull: PullId, lane: Lane, batch: u32, wait: Option<Duration> },
    /// Look for an outcome and for a history.
    Examine(Token),
    /// Run the task.
    Run(Token),
    /// Take the task back from the pool if it has not begun; end its worker if `kill` says so.
    Stop { token: Token, kill: bool },
    /// Record the outcome of the run.
    RecordOutcome(Token),
    /// Record that no node knows the function.
    RecordUnknown(Token),
    /// Record that the task was given up.
    RecordGivenUp { token: Token, deaths: u64 },
    /// Store the task among the dead letters.
    RecordDead { token: Token, deaths: u64, history: History },
    /// Store the history of a task that is to begin, in place of the one with this revision.
    RecordBegin { token: Token, history: History, revision: u64 },
    /// Store the history of a task that is to be returned, likewise.
    RecordReturn { token: Token, history: History, revision: u64 },
    /// Extend the lease.
    Extend(Token),
    /// Acknowledge the task, and forget it.
    Acknowledge(Token),
    /// Return the task, and forget it.
    Return { token: Token, pause: Duration },
    /// Forget the task, which somebody else has by now.
    Forget(Token),
}

/// Settings of a node that its decisions depend on.
#[derive(Debug, Clone)]
pub(in crate::node) struct Settings {
    pub(in crate::node) name: String,
    pub(in crate::node) workers: u32,
    /// The amount that there is of each resource.
    pub(in crate::node) resources: BTreeMap<String, u64>,
    /// The time after which the server delivers a task again.
    pub(in crate::node) lease: Duration,
    /// Names of the functions, for tasks that are returned because of theirs.
    pub(in crate::node) functions: Vec<String>,
    /// `true` if brief tasks have a backlog.
    pub(in crate::node) has_backlog: bool,
}
