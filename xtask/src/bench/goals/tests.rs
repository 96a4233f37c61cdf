//! Verdicts over figures that were made up.

use super::{GOALS, table};
use crate::bench::figures::Figures;

/// The row whose goal begins so, as text.
fn row(figures: &str, begin: &str) -> String {
    let text = table(&Figures::parse(figures).unwrap()).text();
    text.lines().find(|line| line.starts_with(begin)).unwrap_or_default().to_owned()
}

#[test]
fn the_median_decides() {
    let met = "figure\tthroughput\teach_per_second\tring\t1e6\t2e6\t3e6\n";
    assert!(row(met, "no-ops one by one").ends_with(" met"));
    assert!(!row(met, "no-ops one by one").ends_with("not met"));
    let missed = "figure\tthroughput\teach_per_second\tring\t1e6\t1.9e6\t3e6\n";
    assert!(row(missed, "no-ops one by one").ends_with("not met"));
}

#[test]
fn at_most_is_the_other_way_round() {
    let figure = |value: &str| format!("figure\tidle\tsystem_calls_count\tring\t{value}\n");
    assert!(!row(&figure("0e0"), "system calls").ends_with("not met"));
    assert!(row(&figure("1e0"), "system calls").ends_with("not met"));
}

#[test]
fn the_best_peer_is_the_fastest_that_was_measured_and_is_named() {
    let figures = "figure\tthroughput\teach_per_second\tring\t1e6\n\
                   figure\tthroughput\teach_per_second\tipc\t9e5\n\
                   figure\tthroughput\teach_per_second\tloky\t1e4\n\
                   figure\tthroughput\teach_per_second\tprocspawn\t2e4\n";
    let row = row(figures, "the same over the best peer");
    assert!(row.contains("procspawn") && row.contains("50.0x"), "{row}");
    assert!(row.ends_with("not met"), "{row}");
}

#[test]
fn eight_workers_are_a_share_of_two() {
    let figures = "figure\tthroughput\teach_per_second\tring\t1e6\t2e6\n\
                   figure\tthroughput\teach_8_workers_per_second\tring\t8e5\t1.6e6\n";
    let row = row(figures, "8 workers");
    assert!(row.contains("80.0 %") && row.ends_with("  met"), "{row}");
}

#[test]
fn what_was_not_measured_is_neither_met_nor_zero() {
    let missing = "missing\tidle\tsystem_calls_count\tring\tstrace does not start\n";
    let row = row(missing, "system calls");
    assert!(row.contains("strace does not start") && row.ends_with("not measured"), "{row}");
    let nothing = table(&Figures::default()).text();
    assert_eq!(nothing.matches("not measured").count(), GOALS.len());
}
