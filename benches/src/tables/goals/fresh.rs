//! The goals for starts, and for a process of each task's own.

use super::Bound::{AtLeast, AtMost};
use super::Measure::{Figure, OverBestPeer, Ratio};
use super::{Goal, goal, raw, ring};
use crate::tables::unit::Unit;

const SECTION: &str = "fresh";

pub(super) const GOALS: &[Goal] = &[
    goal(
        "start of 16 workers to the first result of each, over 16 raw spawns",
        Ratio(ring("start", "first_results_16_seconds"), raw("start", "spawn_16_seconds")),
        Unit::Times,
        AtMost(0.5),
    ),
    goal(
        "the same for 64 workers",
        Ratio(ring("start", "first_results_64_seconds"), raw("start", "spawn_64_seconds")),
        Unit::Times,
        AtMost(0.5),
    ),
    goal(
        "the same for 256 workers",
        Ratio(ring("start", "first_results_256_seconds"), raw("start", "spawn_256_seconds")),
        Unit::Times,
        AtMost(0.5),
    ),
    goal(
        "from the kill of a worker to a task in its replacement, over a raw spawn",
        Ratio(ring("crash", "recovered_p50_seconds"), raw("crash", "spawn_p50_seconds")),
        Unit::Times,
        AtMost(0.5),
    ),
    goal(
        "tasks with a process each, 2 workers",
        Figure(ring(SECTION, "tasks_per_second")),
        Unit::PerSecond,
        AtLeast(4e3),
    ),
    goal(
        "the same over the best peer",
        OverBestPeer(ring(SECTION, "tasks_per_second")),
        Unit::Times,
        AtLeast(5.0),
    ),
    goal(
        "one task with a process of its own after the other, p50",
        Figure(ring(SECTION, "one_p50_seconds")),
        Unit::Seconds,
        AtMost(300e-6),
    ),
    goal(
        "one more worker beside 500 MiB that were preloaded, p50",
        Figure(ring(SECTION, "with_500_mib_one_more_p50_seconds")),
        Unit::Seconds,
        AtMost(1e-3),
    ),
    goal(
        "bytes of its own of each of 16 such workers, at most",
        Figure(ring(SECTION, "with_500_mib_own_bytes_count")),
        Unit::Count,
        AtMost(4.0 * 1024.0 * 1024.0),
    ),
];
