//! The goals for tasks that travel through servers.

use super::Bound::{AtLeast, AtMost};
use super::Measure::{Figure, OverBestPeer, Ratio, Share};
use super::{Goal, goal, raw, ring};
use crate::results::Key;
use crate::tables::unit::Unit;

const SECTION: &str = "cluster";

const EACH: Key<'static> = ring(SECTION, "r1_each_per_second");

/// A goal for the share of what the transport can do.
const fn share(description: &'static str, name: &'static str) -> Goal {
    let measure = Share(raw(SECTION, name), ring(SECTION, name));
    goal(description, measure, Unit::Percent, AtLeast(60.0))
}

/// A goal for tasks of 10 ms on two nodes with one worker each.
const fn even(description: &'static str, name: &'static str) -> Goal {
    goal(description, Figure(ring(SECTION, name)), Unit::Percent, AtLeast(95.0))
}

/// A goal for large payloads, as a multiple of the time that the object store takes.
const fn payloads(description: &'static str, name: &'static str) -> Goal {
    goal(description, Ratio(raw(SECTION, name), ring(SECTION, name)), Unit::Times, AtMost(2.0))
}

/// A goal for the round trip, as a multiple of the transport's.
const fn trip(description: &'static str, name: &'static str) -> Goal {
    goal(description, Ratio(ring(SECTION, name), raw(SECTION, name)), Unit::Times, AtMost(2.0))
}

pub(super) const GOALS: &[Goal] = &[
    share("cluster, one server: no-ops one by one, share of the transport", "r1_each_per_second"),
    share("cluster, three servers: the same", "r3_each_per_second"),
    goal("cluster, one server: over the best peer", OverBestPeer(EACH), Unit::Times, AtLeast(10.0)),
    goal(
        "cluster, one server: map of no-ops",
        Figure(ring(SECTION, "r1_map_per_second")),
        Unit::PerSecond,
        AtLeast(5e5),
    ),
    share("cluster, three servers: map of no-ops, share of the transport", "r3_map_per_second"),
    trip("cluster, one server: round trip over the transport's", "r1_round_trip_p50_seconds"),
    trip("cluster, three servers: the same", "r3_round_trip_p50_seconds"),
    even("cluster, one server: 10 ms on two nodes, share of the ideal", "r1_even_percent"),
    even("cluster, three servers: the same", "r3_even_percent"),
    payloads("cluster, one server: payloads over the object store's", "r1_payloads_per_second"),
    payloads("cluster, three servers: the same", "r3_payloads_per_second"),
    goal(
        "cluster, an idle node: CPU time in its first minute",
        Figure(ring("cluster-idle", "r1_first_node_cpu_seconds")),
        Unit::Seconds,
        AtMost(0.1),
    ),
    goal(
        "cluster, an idle node: messages in its first minute",
        Figure(ring("cluster-idle", "r1_first_node_messages_count")),
        Unit::Count,
        AtMost(100.0),
    ),
];
