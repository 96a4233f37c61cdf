//! The account of all tasks: one outcome each, and one that fits.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use brigade::{TaskError, TaskErrorKind};

use super::behavior::{Behavior, Reply, Sent, judge};
use super::submitter::Account;
use super::surroundings::Surroundings;

/// Actions on the tasks of a round that decide which outcomes are possible.
#[derive(Debug, Default)]
pub(super) struct Circumstances {
    /// Workers that the intruder killed.
    pub(super) killed: BTreeSet<u32>,
    /// `true` if the intruder stopped any worker; a drain kills stopped ones.
    pub(super) stopped_any: bool,
    /// `true` if the shutdown could cancel tasks that had not begun.
    pub(super) may_cancel: bool,
    /// `true` if the shutdown could kill running tasks.
    pub(super) may_kill: bool,
    /// Surroundings of the round: scribbling tasks ruin their workers, and a pool without
    /// descriptors may break.
    pub(super) surroundings: Option<Surroundings>,
}

/// Counts of a run.
#[derive(Debug, Default)]
pub struct Summary {
    pub(super) rounds: u64,
    /// Number of child processes per surroundings. Their tasks are not counted.
    pub(super) children: BTreeMap<Surroundings, u64>,
    /// Output of the only child process, if there was nothing else.
    pub(super) printed: Option<String>,
    pub(super) killed: u64,
    pub(super) stopped: u64,
    pub(super) refused: u64,
    /// Number of snapshots that were taken meanwhile.
    pub(super) snapshots: u64,
    /// Memory of the host in bytes at regular intervals, in a run with a number of tasks.
    pub(super) memory: Vec<u64>,
    /// Number of journal events for which a scheduler without a pool made the same decisions.
    pub(super) replayed: Option<u64>,
    counts: BTreeMap<Behavior, [u64; COLUMNS.len()]>,
}

const COLUMNS: [&str; 9] =
    ["accepted", "value", "panicked", "died", "cancelled", "killed", "late", "codec", "dropped"];

impl Summary {
    /// Settles the account of a submitter whose pool has ended.
    pub(super) fn settle(
        &mut self,
        account: Account,
        circumstances: &Circumstances,
    ) -> Result<(), String> {
        self.refused += account.refused;
        for sent in account.dropped {
            self.count(&sent, COLUMNS.len() - 1);
        }
        for (sent, handle) in account.open {
            if !handle.is_done() {
                return Err(format!("the pool has ended, and {sent:?} has no outcome: {handle:?}"));
            }
            self.enter(&sent, &handle.wait(), circumstances)?;
        }
        for (sent, outcome) in account.closed {
            self.enter(&sent, &outcome, circumstances)?;
        }
        Ok(())
    }

    fn enter(
        &mut self,
        sent: &Sent,
        outcome: &Result<Reply, TaskError>,
        circumstances: &Circumstances,
    ) -> Result<(), String> {
        judge(sent, outcome, circumstances)?;
        let column = match outcome.as_ref().map_err(TaskError::kind) {
            Ok(_) => 1,
            Err(TaskErrorKind::Panicked { .. }) => 2,
            Err(TaskErrorKind::WorkerDied { .. }) => 3,
            Err(TaskErrorKind::Cancelled) => 4,
            Err(TaskErrorKind::Killed) => 5,
            Err(TaskErrorKind::DeadlineExceeded { .. }) => 6,
            Err(_) => 7,
        };
        self.count(sent, column);
        Ok(())
    }

    fn count(&mut self, sent: &Sent, column: usize) {
        let row = self.counts.entry(sent.behavior).or_default();
        row[0] += 1;
        row[column] += 1;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, children, killed, stopped, refused, snapshots, .. } = self;
        let Self { printed, memory, replayed, counts, .. } = self;
        if let Some(printed) = printed {
            return write!(out, "in a child process:\n{}", printed.trim_end());
        }
        write!(out, "{:<18}", "task")?;
        for column in COLUMNS {
            write!(out, "{column:>10}")?;
        }
        let mut total = [0; COLUMNS.len()];
        for (behavior, row) in counts {
            write!(out, "\n{:<18}", format!("{behavior:?}"))?;
            for (count, total) in row.iter().zip(&mut total) {
                write!(out, "{count:>10}")?;
                *total += count;
            }
        }
        write!(out, "\n{:<18}", "all")?;
        for count in total {
            write!(out, "{count:>10}")?;
        }
        write!(
            out,
            "\n{rounds} pools; {killed} workers killed and {stopped} stopped from outside; \
             {refused} submissions refused by a full queue; {snapshots} consistent snapshots"
        )?;
        if !children.is_empty() {
            write!(out, "\nadverse surroundings, with child processes: ")?;
            for (index, (surroundings, count)) in children.iter().enumerate() {
                let comma = if index == 0 { "" } else { ", " };
                write!(out, "{comma}{surroundings} {count}")?;
            }
        }
        if !memory.is_empty() {
            let mebibytes: Vec<_> = memory.iter().map(|bytes| bytes >> 20).collect();
            write!(out, "\nmemory of the host, in MiB: {mebibytes:?}")?;
        }
        if let Some(events) = replayed {
            write!(out, "\njournal: {events} events lead to the same decisions when replayed")?;
        }
        Ok(())
    }
}
