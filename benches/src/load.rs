//! Amount of work for each contestant: the same for all of them, in every language.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The amounts, passed to every contestant as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Load {
    /// Worker processes of a pool, unless the section uses another number.
    pub(crate) workers: usize,
    /// Approximate duration of one measurement of throughput. Each contestant runs the number of
    /// tasks that fits, so that slow ones do not dominate the run.
    pub(crate) throughput_seconds: f64,
    /// Measurements of each throughput in one turn. The median counts, because the first lap pays
    /// for memory that the process has not used before.
    pub(crate) laps: usize,
    /// Maximum number of outstanding tasks, so that throughput does not measure memory.
    pub(crate) most_submitted: usize,
    /// Maximum number of round trips.
    pub(crate) trips: usize,
    /// Maximum time for the round trips.
    pub(crate) trip_seconds: f64,
    /// Round trips that start while both sides sleep.
    pub(crate) parked_trips: usize,
    /// Pause before each of them, in which both sides fall asleep.
    pub(crate) pause_seconds: f64,
    /// Durations of short tasks, in microseconds.
    pub(crate) grain_micros: Vec<u64>,
    /// Approximate duration of one lap of short tasks.
    pub(crate) grain_seconds: f64,
    /// Numbers of threads that submit and wait in closed loops.
    pub(crate) callers: Vec<usize>,
    /// Duration of one lap of closed loops.
    pub(crate) caller_seconds: f64,
    /// Sizes of payloads.
    pub(crate) payload_sizes: Vec<usize>,
    /// Approximate number of bytes to move for each size.
    pub(crate) payload_budget: usize,
    /// The only payload size that peers are measured with.
    pub(crate) peer_payload: usize,
    /// Sizes of results that are handed over.
    pub(crate) handover_sizes: Vec<usize>,
    /// Batches of a long stream, and the size of each.
    pub(crate) batch_count: usize,
    pub(crate) batch_size: usize,
    /// Items of a stream whose ends differ in speed.
    pub(crate) flow_items: usize,
    /// Pools to start of each size.
    pub(crate) starts: usize,
    /// Workers to kill.
    pub(crate) crashes: usize,
    /// Tasks that each run in a process of their own.
    pub(crate) fresh_tasks: usize,
    /// Seconds to watch an idle pool.
    pub(crate) idle_seconds: u64,
    /// Repetitions of a thousand tasks of which one crashes.
    pub(crate) fallouts: usize,
    /// A tenth of the tasks to submit to a queue that is never emptied.
    pub(crate) backlog_tenth: usize,
    /// Maximum number of 1 MiB tasks in a queue that is emptied slowly.
    pub(crate) pressure_limit: usize,
    /// Tasks of 10 ms each.
    pub(crate) even_tasks: usize,
    /// Tasks of which one in a hundred takes 100 ms.
    pub(crate) uneven_tasks: usize,
    /// Seed of everything random; the same in all rounds.
    pub(crate) seed: u64,
    /// Files in the tree.
    pub(crate) files: usize,
    /// File that lists the paths of the tree's files, one per line.
    pub(crate) list: PathBuf,
    /// Pictures to load.
    pub(crate) picture_count: usize,
    /// Pictures of one batch.
    pub(crate) picture_batch: usize,
    /// Width and height of a loaded picture.
    pub(crate) picture_side: u32,
    /// File that lists the paths of the pictures, one per line.
    pub(crate) pictures: PathBuf,
    /// Large payloads that travel through servers in each direction.
    pub(crate) object_count: usize,
    /// Seconds for which the service is under load.
    pub(crate) service_seconds: u32,
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
            grain_micros: vec![1, 3, 10, 30, 100, 1_000],
            grain_seconds: if quick { 0.1 } else { 0.2 },
            callers: vec![1, 2, 4, 16, 64],
            caller_seconds: if quick { 0.1 } else { 0.4 },
            payload_sizes: vec![1 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20],
            payload_budget: pick(512 << 20, 64 << 20),
            peer_payload: 16 << 20,
            handover_sizes: handover_sizes(quick),
            batch_count: pick(10_000, 400),
            batch_size: 16 << 20,
            flow_items: pick(800, 200),
            starts: pick(10, 3),
            crashes: pick(40, 10),
            fresh_tasks: pick(1_000, 200),
            idle_seconds: if quick { 5 } else { 10 },
            fallouts: pick(200, 40),
            backlog_tenth: pick(1_000_000, 100_000),
            pressure_limit: pick(256, 64),
            even_tasks: pick(1_000, 200),
            uneven_tasks: pick(2_000, 1_000),
            seed: 0x00b1_69ad,
            files: pick(30_000, 3_000),
            list: PathBuf::new(),
            picture_count: pick(480, 64),
            picture_batch: 16,
            picture_side: 224,
            pictures: PathBuf::new(),
            object_count: pick(256, 24),
            service_seconds: if quick { 3 } else { 10 },
        }
    }
}

/// Returns sizes from 1 KiB to 1 GiB, or to 16 MiB.
fn handover_sizes(quick: bool) -> Vec<usize> {
    let all = [1 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20, 1 << 30];
    all.into_iter().filter(|&size| !quick || size <= 16 << 20).collect()
}
