//! The history of a task: its deliveries that ended without an outcome.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::impl_head_only;

/// Maximum number of reports in a history.
const REPORT_LIMIT: usize = 32;

/// The history of a task: its deliveries that ended without an outcome. Each message has all of
/// it, so that the last one is enough.
///
/// The first delivery is begun without a record, because that would cost as much as the outcome. So
/// its silence counts as a death. Later ones are recorded before they begin, and count only then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct History {
    /// The delivery that a node has begun and not ended, counted from 1.
    pub(crate) begun: Option<u64>,
    /// The last delivery whose end is known.
    pub(crate) settled: u64,
    /// Number of deliveries that a node began and never reported.
    pub(crate) node_deaths: u64,
    /// Number of deliveries to nodes that did not know the function.
    pub(crate) unknown: u64,
    /// Number of deliveries in which the worker died.
    pub(crate) worker_deaths: u64,
    /// The latest of them.
    pub(crate) reports: Vec<Report>,
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
    /// The node does not know the function. A list of those that it knows.
    UnknownTask(Vec<String>),
    /// The worker died that ran it. A description of the death.
    WorkerDied(String),
}

impl fmt::Display for Incident {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HandedBack => out.write_str("returned before it began"),
            Self::UnknownTask(_) => out.write_str("the node does not know the function"),
            Self::WorkerDied(description) => out.write_str(description),
        }
    }
}

impl History {
    /// Returns the number of deaths of nodes and workers before a delivery, which is counted from
    /// 1.
    pub(crate) fn deaths_before(&self, delivery: u64) -> u64 {
        self.worker_deaths + self.node_deaths + u64::from(self.has_silent(delivery))
    }

    /// Returns `true` if a delivery before the given one was begun, and nobody has reported its
    /// end: its node has died, or its lease has run out.
    fn has_silent(&self, delivery: u64) -> bool {
        match self.begun {
            // A later one may still run, so the given one is stale.
            Some(begun) => begun < delivery,
            None => self.settled == 0 && delivery > 1,
        }
    }

    /// Notes that a node begins a delivery.
    pub(crate) fn begin(&mut self, delivery: u64) {
        self.settle(delivery);
        self.begun = self.begun.max(Some(delivery));
    }

    /// Counts what is known of the deliveries before one.
    fn settle(&mut self, delivery: u64) {
        self.node_deaths += u64::from(self.has_silent(delivery));
        self.begun = self.begun.filter(|begun| *begun > delivery);
        self.settled = self.settled.max(delivery.saturating_sub(1));
    }

    /// Adds a delivery that ended without an outcome.
    pub(crate) fn add(&mut self, report: Report) {
        self.settle(report.delivery);
        self.settled = self.settled.max(report.delivery);
        match report.incident {
            Incident::HandedBack => {}
            Incident::UnknownTask(_) => self.unknown += 1,
            Incident::WorkerDied(_) => self.worker_deaths += 1,
        }
        if self.reports.len() >= REPORT_LIMIT {
            self.reports.remove(0);
        }
        self.reports.push(report);
    }
}

impl_head_only!(History);
