//! What is measured, by question.

use std::time::Duration;

use clap::ValueEnum;

/// One question that all contestants answer in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Section {
    /// How many no-op tasks a second.
    Throughput,
    /// How long one no-op takes there and back.
    Latency,
    /// How long bytes take in and out.
    Payload,
    /// How long until every worker of a new pool has answered.
    Start,
    /// How long until a killed worker is noticed, and replaced.
    Crash,
    /// What a pool does that has nothing to do.
    Idle,
    /// How well tasks that take time fill the workers.
    Balance,
    /// Long tasks after short ones, in a pool that has one process.
    Serial,
    /// One of a thousand queued tasks crashes: who else fails, and how soon the next one runs.
    Fallout,
    /// What a long queue costs, and whether a longer one costs more a task.
    Backlog,
    /// Far more workers than cores.
    Crowd,
    /// A producer that is faster than the pool.
    Pressure,
    /// Digests of many small files.
    Work,
}

impl Section {
    /// As it is typed, and as it stands in the files.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// What takes longer hangs: several times what the slowest contestant needs on a busy machine.
    pub(crate) fn deadline(self) -> Duration {
        Duration::from_secs(match self {
            Self::Idle | Self::Payload => 180,
            _ => 120,
        })
    }
}
