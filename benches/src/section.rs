//! The sections of a run.

use std::time::Duration;

use clap::ValueEnum;

/// A group of figures that contestants measure in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Section {
    /// No-op tasks per second.
    Throughput,
    /// Round trip of one no-op.
    Latency,
    /// Share of the cores that short tasks get, by their duration.
    Grain,
    /// Threads that each submit a no-op, wait for it, and repeat.
    Callers,
    /// Time to pass bytes in and out.
    Payload,
    /// Time until every worker of a new pool has returned a result.
    Start,
    /// Time until a killed worker is noticed and replaced.
    Crash,
    /// Tasks that each run in a process of their own.
    Fresh,
    /// System calls and context switches of an idle pool.
    Idle,
    /// Utilization of the workers by longer tasks.
    Balance,
    /// Long tasks after short ones, in a pool with one process.
    Serial,
    /// Crash of one of a thousand queued tasks: survivors, and time until the next task runs.
    Fallout,
    /// Cost per task of a long queue, as it grows.
    Backlog,
    /// Far more workers than cores.
    Crowd,
    /// A producer that is faster than the pool.
    Pressure,
    /// SHA-256 of many small files.
    Work,
    /// Time from the worker's return of a large result until the host has read both ends of it.
    Handover,
    /// A long stream of large batches: what grows.
    Batches,
    /// Streams whose producer, consumer or workers differ in speed.
    Flow,
    /// Pictures, decoded and resized into batches.
    Loader,
    /// Calls that tasks of an async runtime await.
    Async,
    /// The example `service` under load.
    Service,
    /// No-op tasks over servers of NATS JetStream.
    Cluster,
    /// Costs of sandboxes and limits, and the ends of tasks that exceed them.
    Sandbox,
    /// CPU time and messages of a cluster that has nothing to do.
    ClusterIdle,
}

impl Section {
    /// The section's name on the command line and in the files.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Time after which a turn counts as hung: several times the needs of the slowest contestant on
    /// a busy machine.
    pub(crate) fn deadline(self) -> Duration {
        Duration::from_secs(match self {
            Self::Idle | Self::Payload | Self::Handover => 180,
            Self::Batches | Self::ClusterIdle | Self::Sandbox => 300,
            Self::Cluster => 600,
            _ => 120,
        })
    }
}
