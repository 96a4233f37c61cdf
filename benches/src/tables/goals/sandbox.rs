//! The goals for sandboxes and limits.

use super::Bound::{AtLeast, AtMost};
use super::Measure::Figure;
use super::{Goal, goal, ring};
use crate::tables::unit::Unit;

const SECTION: &str = "sandbox";

pub(super) const GOALS: &[Goal] = &[
    goal(
        "start of a worker in a strict sandbox, more than without",
        Figure(ring(SECTION, "start_more_in_a_sandbox_seconds")),
        Unit::Seconds,
        AtMost(0.00025),
    ),
    goal(
        "no-ops in a strict sandbox, share of those without",
        Figure(ring(SECTION, "sandboxed_rate_percent")),
        Unit::Percent,
        AtLeast(97.0),
    ),
    goal(
        "limit on processor time: tasks that ended early under a load of 20",
        Figure(ring(SECTION, "busy_early_count")),
        Unit::Count,
        AtMost(0.0),
    ),
    goal(
        "limit on processor time: most that a task had beyond it, under a load of 20",
        Figure(ring(SECTION, "busy_latest_seconds")),
        Unit::Seconds,
        AtMost(0.02),
    ),
];
