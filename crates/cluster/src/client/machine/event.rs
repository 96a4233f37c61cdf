//! Facts that the machine takes, and steps that it answers with.

use std::time::Duration;

use crate::clock::Monotonic;
use crate::publisher::RefusalKind;

/// The number of a submission, unique within its cluster.
pub(in crate::client) type Ticket = u64;

/// An input of the machine.
#[derive(Debug)]
pub(in crate::client) enum Event {
    /// A fact about a submission.
    Fact(Ticket, Fact),
    /// The time that `next_deadline` returned has come.
    Tick,
}

/// A fact about a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::client) enum Fact {
    Submitted {
        when_full: WhenFull,
        /// `true` if an earlier run of the batch has recorded an outcome.
        has_outcome: bool,
    },
    /// The recorded outcome was searched for.
    Looked { is_found: bool },
    /// The publication of the task has its answer: its sequence in the queue, or a refusal. The
    /// task of a named item may be in the queue already.
    Published(Result<u64, RefusalKind>),
    /// The recorded outcome has arrived.
    Outcome,
    /// The task is no longer wanted.
    EndWanted { kill: bool },
    /// The end was offered as the outcome. If there is one already, it will arrive, or has.
    EndOffered(Result<(), RefusalKind>),
    /// The task was searched for. An outcome that was found is an event of its own, after this one.
    Searched(Found),
}

/// The result of a search for a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::client) enum Found {
    /// The task is in the queue or on its way there, or has an outcome.
    Task,
    /// The server did not answer.
    Unknown,
    /// The server has neither the task nor an outcome, for this reason.
    Nowhere(String),
}

/// The behavior of a submission while the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::client) enum WhenFull {
    Wait,
    /// Waits until this time, at which the task is offered once more.
    WaitUntil(Monotonic),
    Fail,
}

/// A step for the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::client) enum Action {
    /// Search for the recorded outcome.
    Look(Ticket),
    Publish(Ticket),
    /// Offer the end as the outcome.
    OfferEnd {
        ticket: Ticket,
        kill: bool,
    },
    /// The publication has its final answer: the window has room for another.
    LeaveWindow(Ticket),
    Complete {
        ticket: Ticket,
        with: Completion,
    },
    /// Ask nodes to drop the task.
    Broadcast {
        ticket: Ticket,
        kill: bool,
    },
    /// Delete the task from the queue. The sequence is unknown if another run has published it.
    Remove {
        ticket: Ticket,
        sequence: Option<u64>,
    },
    /// Search for the task, which has waited for long. The sequence is unknown if another run has
    /// published it, or if its publication has no answer.
    Search {
        ticket: Ticket,
        sequence: Option<u64>,
        is_published: bool,
        waited: Duration,
    },
    /// Send nothing about the submission anymore.
    GiveUp(Ticket),
    /// Nothing about the submission is outstanding.
    Forget(Ticket),
}

/// The way in which a submission ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::client) enum Completion {
    /// By the outcome that arrives with this event.
    Outcome,
    /// By this client's record.
    Ended {
        kill: bool,
    },
    /// The task was not accepted.
    Full,
    Failed(String),
    /// Nothing is left of the task.
    Lost(String),
}
