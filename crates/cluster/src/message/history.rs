//! The history of a task: its deliveries that ended without an outcome.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::impl_head_only;

/// Maximum number of reports in a history.
const REPORT_LIMIT: usize = 32;

/// The history of a task: its deliveries that ended without an outcome. Each message has all of
/// it, so that the last one is enough. Nodes replace only the one that they have read.
///
/// The first delivery is begun without a record, because that would cost as much as the outcome. So
/// its silence counts as a death. Later ones are recorded before they begin, and count only then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct History {
    /// The delivery that a node has begun and not ended.
    pub(crate) begun: Option<DeliveryId>,
    /// The last delivery whose end is known.
    pub(crate) settled: DeliveryId,
    /// Number of deliveries that a node began and never reported.
    pub(crate) node_deaths: u64,
    /// Number of deliveries to nodes that did not know the function.
    pub(crate) unknown: u64,
    /// Number of deliveries in which the worker died.
    pub(crate) worker_deaths: u64,
    /// Number of deliveries in which the function failed and the task was to run again.
    pub(crate) failures: u64,
    /// The latest of them.
    pub(crate) reports: Vec<Report>,
}

/// A delivery of a task. Later ones are greater.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub(crate) struct DeliveryId {
    /// Sequence of the message in the queue. A task that is published again gets another one.
    pub(crate) message: u64,
    /// Number of the delivery of this message, counted from 1.
    pub(crate) number: u64,
}

/// A delivery of a task that ended without an outcome, as its node has reported it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// Name of the node.
    pub node: String,
    /// The end of the delivery.
    pub incident: Incident,
    /// Number of the delivery, counted from 1.
    pub delivery: u64,
}

/// The reason why a node returned a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Incident {
    /// The node had not begun it, because it drains or has more than it can run.
    HandedBack,
    /// The node does not know the function. A list of those that it knows, which is empty if the
    /// node cannot read the task.
    UnknownTask(Vec<String>),
    /// The worker died that ran it. A description of the death.
    WorkerDied(String),
    /// The function failed in a way after which the task runs again. A description of the failure.
    Failed(String),
}

impl fmt::Display for Incident {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HandedBack => out.write_str("returned before it began"),
            Self::UnknownTask(names) if names.is_empty() => {
                out.write_str("the node cannot read the task, as of another version of Brigade")
            }
            Self::UnknownTask(_) => out.write_str("the node does not know the function"),
            Self::WorkerDied(description) | Self::Failed(description) => out.write_str(description),
        }
    }
}

impl DeliveryId {
    /// Returns the first delivery of the same message.
    fn first(self) -> Self {
        Self { number: 1, ..self }
    }

    /// Returns the delivery of the same message before this one.
    fn previous(self) -> Self {
        Self { number: self.number.saturating_sub(1), ..self }
    }
}

impl History {
    /// Returns the number of deaths of nodes and workers before a delivery.
    pub(crate) fn deaths_before(&self, delivery: DeliveryId) -> u64 {
        self.worker_deaths + self.node_deaths + self.silent_before(delivery)
    }

    /// Returns the number of attempts that ended in a way after which the task may run again.
    pub(crate) fn failed_attempts(&self) -> u32 {
        u32::try_from(self.worker_deaths + self.failures).unwrap_or(u32::MAX)
    }

    /// Returns the number of attempts before a delivery: those that failed, and those whose node
    /// died.
    pub(crate) fn attempts_before(&self, delivery: DeliveryId) -> u32 {
        u32::try_from(self.failures + self.deaths_before(delivery)).unwrap_or(u32::MAX)
    }

    /// Returns the number of deliveries before the given one that were begun, and whose end nobody
    /// has reported: the node has died, or its lease has run out.
    fn silent_before(&self, delivery: DeliveryId) -> u64 {
        // One that was recorded. A later one may still run, so the given one is stale.
        let recorded = self.begun.is_some_and(|begun| begun < delivery);
        let is_of_another = self.begun.is_none_or(|begun| begun.message < delivery.message);
        let first = delivery.first();
        let unrecorded = is_of_another && self.settled < first && first < delivery;
        u64::from(recorded) + u64::from(unrecorded)
    }

    /// Returns `true` if the end of a delivery is known, or a later one has begun.
    pub(crate) fn is_past(&self, delivery: DeliveryId) -> bool {
        self.settled >= delivery || self.begun > Some(delivery)
    }

    /// Notes that a node begins a delivery.
    pub(crate) fn begin(&mut self, delivery: DeliveryId) {
        self.settle(delivery);
        self.begun = self.begun.max(Some(delivery));
    }

    /// Counts what is known of the deliveries before one.
    fn settle(&mut self, delivery: DeliveryId) {
        self.node_deaths += self.silent_before(delivery);
        self.begun = self.begun.filter(|begun| *begun > delivery);
        self.settled = self.settled.max(delivery.previous());
    }

    /// Adds a delivery that ended without an outcome.
    pub(crate) fn add(&mut self, delivery: DeliveryId, report: Report) {
        self.settle(delivery);
        self.settled = self.settled.max(delivery);
        match report.incident {
            Incident::HandedBack => {}
            Incident::UnknownTask(_) => self.unknown += 1,
            Incident::WorkerDied(_) => self.worker_deaths += 1,
            Incident::Failed(_) => self.failures += 1,
        }
        if self.reports.len() >= REPORT_LIMIT {
            self.reports.remove(0);
        }
        self.reports.push(report);
    }
}

impl_head_only!(History);
