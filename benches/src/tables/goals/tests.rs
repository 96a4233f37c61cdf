//! Verdicts on synthetic figures.

use super::{goals, listing, table};
use crate::results::Results;

/// Returns results with one figure of Brigade over rings.
fn ring(section: &str, name: &str, values: &[f64]) -> Results {
    with(Results::new(values.len()), section, name, "ring", values)
}

fn with(results: Results, section: &str, name: &str, contestant: &str, values: &[f64]) -> Results {
    results.with(section, name, contestant, values.iter().copied().map(Some))
}

/// Returns the row whose goal starts with `prefix`, as text.
fn row(results: &Results, prefix: &str) -> String {
    let text = table(results).text();
    text.lines().find(|line| line.starts_with(prefix)).unwrap_or_default().to_owned()
}

#[test]
fn the_median_decides() {
    let each =
        |values: &[f64]| row(&ring("throughput", "each_per_second", values), "no-ops one by one");
    let met = each(&[1e6, 2.5e6, 3e6]);
    assert!(met.ends_with(" met") && !met.ends_with("not met"), "{met}");
    assert!(each(&[1e6, 2.4e6, 3e6]).ends_with("not met"));
}

#[test]
fn at_most_is_an_upper_bound() {
    let calls = |count| row(&ring("idle", "system_calls_count", &[count]), "system calls");
    assert!(!calls(0.0).ends_with("not met"));
    assert!(calls(1.0).ends_with("not met"));
}

#[test]
fn the_best_measured_peer_is_named() {
    let mut results = Results::new(1);
    for (contestant, value) in [("ring", 1e6), ("ipc", 9e5), ("loky", 1e4), ("procspawn", 2e4)] {
        results = with(results, "throughput", "each_per_second", contestant, &[value]);
    }
    let row = row(&results, "the same over the best peer");
    assert!(row.contains("procspawn") && row.contains("50.0x"), "{row}");
    assert!(row.ends_with("not met"), "{row}");
}

#[test]
fn eight_workers_are_a_percentage_of_two() {
    let two = ring("throughput", "each_per_second", &[1e6, 2e6]);
    let both = with(two, "throughput", "each_8_workers_per_second", "ring", &[8e5, 1.6e6]);
    let row = row(&both, "8 workers");
    assert!(row.contains("80.0 %") && row.ends_with("  met"), "{row}");
}

#[test]
fn a_missing_figure_is_not_measured_rather_than_missed() {
    let results =
        Results::new(1).without("idle", "system_calls_count", "ring", "cannot start strace");
    let row = row(&results, "system calls");
    assert!(row.contains("cannot start strace") && row.ends_with("not measured"), "{row}");
    let nothing = table(&Results::new(1)).text();
    assert_eq!(nothing.matches("not measured").count(), goals().count());
}

#[test]
fn goals_of_sections_that_did_not_run_are_only_counted() {
    let results = ring("idle", "system_calls_count", &[0.0]).without(
        "idle",
        "context_switches_count",
        "ring",
        "cannot start strace",
    );
    let text = listing(&results);
    assert!(text.contains("system calls of an idle pool"), "{text}");
    assert!(text.contains("cannot start strace"), "{text}");
    assert!(!text.contains("no-ops one by one"), "{text}");
    let others = goals().count() - 2;
    assert!(text.ends_with(&format!("did not run: {others}\n")), "{text}");
}
