//! How much each contestant does: the same for all of them, whatever they are written in.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Given to every contestant as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Load {
    /// Worker processes of a pool, where the section does not ask for another number.
    pub(crate) workers: usize,
    /// About how long one measurement of throughput takes; each contestant does as many tasks as it
    /// can do in that time, so that the slow ones do not take all of it.
    pub(crate) throughput_seconds: f64,
    /// How often each throughput is measured in a turn; the median counts, as the first lap pays for memory that the system
    /// has not given to the process before.
    pub(crate) laps: usize,
    /// The most tasks that are outstanding at once: memory is not what this measures.
    pub(crate) most_submitted: usize,
    /// The most round trips, and the most time for them.
    pub(crate) trips: usize,
    pub(crate) trip_seconds: f64,
    /// Round trips with everybody asleep, and the pause before each, in which they fall asleep.
    pub(crate) parked_trips: usize,
    pub(crate) pause_seconds: f64,
    /// Sizes of payloads, and about how many bytes are moved for each.
    pub(crate) payload_sizes: Vec<usize>,
    pub(crate) payload_budget: usize,
    /// The one size that peers are measured with.
    pub(crate) peer_payload: usize,
    /// How many pools are started of each size.
    pub(crate) starts: usize,
    /// How many workers are killed.
    pub(crate) crashes: usize,
    pub(crate) idle_seconds: u64,
    /// How often one of a thousand tasks crashes.
    pub(crate) fallouts: usize,
    /// Tasks in a queue that nobody empties, in tenths of all of them.
    pub(crate) backlog_tenth: usize,
    /// The most tasks of 1 MiB in a queue that is emptied slowly.
    pub(crate) pressure_limit: usize,
    /// Tasks of 10 ms each.
    pub(crate) even_tasks: usize,
    /// Tasks of which one in a hundred takes 100 ms.
    pub(crate) uneven_tasks: usize,
    /// Arranges what is random: the same in all rounds.
    pub(crate) seed: u64,
    /// How many files the tree has.
    pub(crate) files: usize,
    /// The paths of the tree's files, one a line.
    pub(crate) list: PathBuf,
}

impl Load {
    pub(crate) fn new(quick: bool) -> Self {
        let pick = |full: usize, small: usize| if quick { small } else { full };
        Self {
            workers: 2,
            throughput_seconds: if quick { 0.2 } else { 0.6 },
            laps: pick(3, 1),
            most_submitted: pick(1_000_000, 200_000),
            trips: pick(100_000, 20_000),
            trip_seconds: if quick { 0.3 } else { 1.0 },
            parked_trips: pick(400, 100),
            pause_seconds: 0.002,
            payload_sizes: vec![1 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20],
            payload_budget: pick(512 << 20, 64 << 20),
            peer_payload: 16 << 20,
            starts: pick(10, 3),
            crashes: pick(40, 10),
            idle_seconds: if quick { 5 } else { 10 },
            fallouts: pick(200, 40),
            backlog_tenth: pick(1_000_000, 100_000),
            pressure_limit: pick(256, 64),
            even_tasks: pick(1_000, 200),
            uneven_tasks: pick(2_000, 1_000),
            seed: 0x00b1_69ad,
            files: pick(30_000, 3_000),
            list: PathBuf::new(),
        }
    }
}
