//! The goals for short tasks, many tasks and many callers.

use super::Bound::{AtLeast, AtMost};
use super::Measure::Figure;
use super::{Goal, goal, ring};
use crate::tables::unit::Unit;

/// A goal for tasks of a duration: their share of what two cores do at best.
const fn share(description: &'static str, name: &'static str, least: f64) -> Goal {
    goal(description, Figure(ring("grain", name)), Unit::Percent, AtLeast(least))
}

/// A goal for the calls of several threads.
const fn calls(description: &'static str, name: &'static str, least: f64) -> Goal {
    goal(description, Figure(ring("callers", name)), Unit::PerSecond, AtLeast(least))
}

pub(super) const GOALS: &[Goal] = &[
    share("tasks of 10 µs one by one, share of two cores", "each_10_us_percent", 90.0),
    share("tasks of 30 µs one by one, share of two cores", "each_30_us_percent", 95.0),
    share("tasks of 100 µs one by one, share of two cores", "each_100_us_percent", 98.0),
    share("the same of 10 µs through a queue of 100", "limited_10_us_percent", 80.0),
    share("map of tasks of 1 µs, share of two cores", "map_1_us_percent", 90.0),
    calls("16 callers in closed loops", "callers_16_per_second", 5e5),
    calls("64 callers in closed loops", "callers_64_per_second", 4e5),
    goal(
        "64 callers in closed loops, p99 of a call",
        Figure(ring("callers", "callers_64_p99_seconds")),
        Unit::Seconds,
        AtMost(1e-3),
    ),
    goal(
        "memory of a queued no-op, its handle included, in bytes",
        Figure(ring("backlog", "bytes_a_no_op_count")),
        Unit::Count,
        AtMost(100.0),
    ),
];
