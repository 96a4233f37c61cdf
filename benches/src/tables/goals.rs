//! Brigade's performance goals, all measured over rings, and the check of each goal.

use std::fmt::Write;

use super::table::Table;
use super::unit::Unit;
use crate::results::{Key, Results, Summary, key};

mod cluster;
mod fresh;
mod payload;
mod sandbox;
mod small;

struct Goal {
    description: &'static str,
    measure: Measure,
    unit: Unit,
    bound: Bound,
}

/// The quantity to compare with the bound.
enum Measure {
    Figure(Key<'static>),
    /// The first figure divided by the second, within each round.
    Ratio(Key<'static>, Key<'static>),
    /// The figure divided by that of the best measured peer.
    OverBestPeer(Key<'static>),
    /// The second figure as a percentage of the first.
    Share(Key<'static>, Key<'static>),
}

#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

use Bound::{AtLeast, AtMost};
use Measure::{Figure, OverBestPeer, Ratio, Share};

const fn ring(section: &'static str, name: &'static str) -> Key<'static> {
    Key { section, name, contestant: "ring" }
}

const fn raw(section: &'static str, name: &'static str) -> Key<'static> {
    Key { section, name, contestant: "raw" }
}

const EACH: Key<'static> = ring("throughput", "each_per_second");
const ROUND_TRIP: Key<'static> = ring("latency", "round_trip_p50_seconds");
const FILES: Key<'static> = ring("work", "files_seconds");
const FUTURES: Key<'static> =
    Key { section: "throughput", name: "each_per_second", contestant: "concurrent.futures" };
const THREADS: Key<'static> = Key { section: "work", name: "files_seconds", contestant: "rayon" };
const PICTURES_OF_THREADS: Key<'static> =
    Key { section: "loader", name: "images_per_second", contestant: "rayon" };

const WITHOUT_RECORDING_EACH: Key<'static> =
    Key { section: "throughput", name: "each_per_second", contestant: "unrecorded" };
const WITHOUT_RECORDING_MAP: Key<'static> =
    Key { section: "throughput", name: "map_per_second", contestant: "unrecorded" };

const fn goal(description: &'static str, measure: Measure, unit: Unit, bound: Bound) -> Goal {
    Goal { description, measure, unit, bound }
}

const GOALS: &[Goal] = &[
    goal("no-ops one by one, 2 workers", Figure(EACH), Unit::PerSecond, AtLeast(2.5e6)),
    goal("the same over concurrent.futures", Ratio(EACH, FUTURES), Unit::Times, AtLeast(200.0)),
    goal("the same over the best peer", OverBestPeer(EACH), Unit::Times, AtLeast(60.0)),
    goal(
        "one task that awaits one no-op after the other",
        Figure(ring("async", "await_p50_seconds")),
        Unit::Seconds,
        AtMost(3e-6),
    ),
    goal(
        "256 tasks that await no-ops",
        Figure(ring("async", "await_256_per_second")),
        Unit::PerSecond,
        AtLeast(1.5e6),
    ),
    goal(
        "map of no-ops, 2 workers",
        Figure(ring("throughput", "map_per_second")),
        Unit::PerSecond,
        AtLeast(1e7),
    ),
    goal(
        "one by one with the recording of metrics, as a share of the same without",
        Share(WITHOUT_RECORDING_EACH, EACH),
        Unit::Percent,
        AtLeast(97.0),
    ),
    goal(
        "map with the recording of metrics, as a share of the same without",
        Share(WITHOUT_RECORDING_MAP, ring("throughput", "map_per_second")),
        Unit::Percent,
        AtLeast(97.0),
    ),
    goal(
        "SHA-256 of many small files over rayon, 2 each",
        Ratio(FILES, THREADS),
        Unit::Times,
        AtMost(1.15),
    ),
    goal("round trip, p50", Figure(ROUND_TRIP), Unit::Seconds, AtMost(1e-6)),
    goal(
        "round trip, p99",
        Figure(ring("latency", "round_trip_p99_seconds")),
        Unit::Seconds,
        AtMost(5e-6),
    ),
    goal(
        "round trip over a raw spinning ping-pong",
        Ratio(ROUND_TRIP, raw("latency", "spin_p50_seconds")),
        Unit::Times,
        AtMost(4.0),
    ),
    goal(
        "round trip, both asleep, over a futex ping-pong with the same pauses",
        Ratio(ring("latency", "parked_p50_seconds"), raw("latency", "futex_paused_p50_seconds")),
        Unit::Times,
        AtMost(1.3),
    ),
    goal(
        "8 workers, as a share of 2 workers' no-ops",
        Share(EACH, ring("throughput", "each_8_workers_per_second")),
        Unit::Percent,
        AtLeast(70.0),
    ),
    goal(
        "hand-over in place, slowest size from 64 KiB to 1 GiB over the fastest",
        Figure(ring("handover", "trusted_spread_times")),
        Unit::Times,
        AtMost(2.0),
    ),
    goal(
        "10,000 batches of 16 MiB: growth of resident memory",
        Figure(ring("batches", "resident_growth_percent")),
        Unit::Percent,
        AtMost(5.0),
    ),
    goal(
        "the same: page faults per 1,000 batches",
        Figure(ring("batches", "page_faults_per_1000_count")),
        Unit::Count,
        AtMost(100.0),
    ),
    goal(
        "the same: more descriptors than after the warm-up",
        Figure(ring("batches", "descriptors_more_count")),
        Unit::Count,
        AtMost(0.0),
    ),
    goal(
        "stream with a slow consumer, share of its rate",
        Figure(ring("flow", "slow_consumer_percent")),
        Unit::Percent,
        AtLeast(95.0),
    ),
    goal(
        "stream with a fast producer and four slow workers, share of their rate",
        Figure(ring("flow", "slow_workers_percent")),
        Unit::Percent,
        AtLeast(95.0),
    ),
    goal(
        "stream with one slow worker of four, share of their rate",
        Figure(ring("flow", "one_slow_of_4_workers_percent")),
        Unit::Percent,
        AtLeast(95.0),
    ),
    goal(
        "buffers behind a slow consumer, as a share of the budget",
        Figure(ring("flow", "memory_of_budget_percent")),
        Unit::Percent,
        AtMost(100.0),
    ),
    goal(
        "pictures loaded, as a share of threads' rate, 2 each",
        Share(PICTURES_OF_THREADS, ring("loader", "images_per_second")),
        Unit::Percent,
        AtLeast(87.0),
    ),
    goal(
        "from the kill of a worker until the caller learns of it, p50",
        Figure(ring("crash", "learned_p50_seconds")),
        Unit::Seconds,
        AtMost(1e-3),
    ),
    goal(
        "from the submission of a task that crashes until the caller learns of it, p50",
        Figure(ring("crash", "crashed_with_0_mib_p50_seconds")),
        Unit::Seconds,
        AtMost(0.3e-3),
    ),
    goal(
        "the same with 64 MiB in the worker",
        Figure(ring("crash", "crashed_with_64_mib_p50_seconds")),
        Unit::Seconds,
        AtMost(0.3e-3),
    ),
    goal(
        "the same with 500 MiB in the worker",
        Figure(ring("crash", "crashed_with_500_mib_p50_seconds")),
        Unit::Seconds,
        AtMost(0.3e-3),
    ),
    goal(
        "system calls of an idle pool of 64",
        Figure(ring("idle", "system_calls_count")),
        Unit::Count,
        AtMost(0.0),
    ),
    goal(
        "context switches of an idle pool of 64",
        Figure(ring("idle", "context_switches_count")),
        Unit::Count,
        AtMost(0.0),
    ),
    goal(
        "successes among 1,000 queued tasks, one of which crashes",
        Figure(ring("fallout", "survivors_of_1000_count")),
        Unit::Count,
        AtLeast(999.0),
    ),
    goal(
        "from the crash of a task to the next one in the replacement, p50, over a raw spawn",
        Ratio(ring("fallout", "resumed_p50_seconds"), raw("crash", "spawn_p50_seconds")),
        Unit::Times,
        AtMost(3.0),
    ),
    goal(
        "slowest tenth of ten million submits, as a share of the median one",
        Figure(ring("backlog", "slowest_tenth_percent")),
        Unit::Percent,
        AtLeast(50.0),
    ),
    goal(
        "256 workers, as a share of 2 workers' no-ops",
        Share(
            ring("crowd", "each_2_workers_per_second"),
            ring("crowd", "each_256_workers_per_second"),
        ),
        Unit::Percent,
        AtLeast(50.0),
    ),
    goal(
        "memory of 1 MiB arguments from a fast producer, as a share of the queue's limit",
        Figure(ring("pressure", "memory_over_limit_percent")),
        Unit::Percent,
        AtMost(110.0),
    ),
    goal(
        "tasks of 10 ms, share of the ideal",
        Figure(ring("balance", "even_percent")),
        Unit::Percent,
        AtLeast(99.0),
    ),
    goal(
        "uneven tasks, beyond the best schedule",
        Figure(ring("balance", "uneven_excess_percent")),
        Unit::Percent,
        AtMost(5.0),
    ),
    goal(
        "24 tasks of 100 ms after 200 no-ops on 4 workers, beyond the ideal",
        Figure(ring("serial", "submit_excess_percent")),
        Unit::Percent,
        AtMost(5.0),
    ),
    goal(
        "the same by map",
        Figure(ring("serial", "map_excess_percent")),
        Unit::Percent,
        AtMost(5.0),
    ),
    goal(
        "the same by map in chunks of one",
        Figure(ring("serial", "map_single_excess_percent")),
        Unit::Percent,
        AtMost(5.0),
    ),
    goal(
        "the same by unordered map",
        Figure(ring("serial", "map_unordered_excess_percent")),
        Unit::Percent,
        AtMost(5.0),
    ),
];

fn goals() -> impl Iterator<Item = &'static Goal> {
    [GOALS, payload::GOALS, fresh::GOALS, small::GOALS, sandbox::GOALS, cluster::GOALS]
        .into_iter()
        .flatten()
}

/// The reason why there is no figure, if none is known.
const DID_NOT_RUN: &str = "its section did not run";

/// Returns a table with one row for each goal.
pub(super) fn table(results: &Results) -> Table {
    rows(results, goals())
}

/// Returns the goals of the sections that ran, and the number of the others.
pub(super) fn listing(results: &Results) -> String {
    let did_run = |goal: &&Goal| goal.measured(results).err().as_deref() != Some(DID_NOT_RUN);
    let (ran, others): (Vec<_>, Vec<_>) = goals().partition(did_run);
    let mut text = rows(results, ran.into_iter()).text();
    if !others.is_empty() {
        let _ =
            writeln!(text, "\nnot measured, because their sections did not run: {}", others.len());
    }
    text
}

fn rows(results: &Results, goals: impl Iterator<Item = &'static Goal>) -> Table {
    let mut table = Table::new(1, &["goal", "at least / at most", "measured", "verdict"]);
    for goal in goals {
        let (measured, verdict) = match goal.measured(results) {
            Ok(summary) => {
                (goal.unit.summary(summary), if goal.is_met(summary) { "met" } else { "not met" })
            }
            Err(reason) => (reason, "not measured"),
        };
        table.add(vec![goal.name(results), goal.bound(), measured, verdict.to_owned()]);
    }
    table
}

impl Goal {
    fn measured(&self, results: &Results) -> Result<Summary, String> {
        let because = |keys: &[Key<'_>]| {
            let reason = keys.iter().find_map(|key| results.reason(*key));
            reason.unwrap_or(DID_NOT_RUN).to_owned()
        };
        match self.measure {
            Figure(figure) => results.summary(figure).ok_or_else(|| because(&[figure])),
            Ratio(over, under) => results.ratio(over, under).ok_or_else(|| because(&[over, under])),
            Share(whole, part) => {
                let ratio = results.ratio(part, whole).ok_or_else(|| because(&[whole, part]))?;
                let percent = |ratio: f64| 100.0 * ratio;
                Ok(Summary {
                    median: percent(ratio.median),
                    lowest: percent(ratio.lowest),
                    highest: percent(ratio.highest),
                })
            }
            OverBestPeer(ours) => {
                results.summary(ours).ok_or_else(|| because(&[ours]))?;
                let peer =
                    results.best_peer(ours.section, ours.name).ok_or("no peer was measured")?;
                let theirs = key(ours.section, ours.name, peer);
                results.ratio(ours, theirs).ok_or_else(|| because(&[ours, theirs]))
            }
        }
    }

    /// Returns `true` if the median is within the bound.
    fn is_met(&self, summary: Summary) -> bool {
        match self.bound {
            AtLeast(least) => summary.median >= least,
            AtMost(most) => summary.median <= most,
        }
    }

    fn name(&self, results: &Results) -> String {
        match self.measure {
            OverBestPeer(ours) => {
                let peer = results.best_peer(ours.section, ours.name).unwrap_or("none");
                format!("{}: {peer}", self.description)
            }
            _ => self.description.to_owned(),
        }
    }

    fn bound(&self) -> String {
        match self.bound {
            AtLeast(least) => format!("≥ {}", self.unit.value(least)),
            AtMost(most) => format!("≤ {}", self.unit.value(most)),
        }
    }
}

#[cfg(test)]
mod tests;
