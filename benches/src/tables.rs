//! Formats the printed tables and the named blocks of the documents.

mod awaiting;
mod batches;
mod callers;
mod cluster;
mod goals;
mod grain;
mod service;
mod table;
mod unit;

use std::collections::BTreeSet;

use crate::results::{Results, key};
use table::Table;
use unit::{Unit, split};

/// Returns every block with its name in the markers.
pub(crate) fn blocks(results: &Results) -> Vec<(&'static str, String)> {
    vec![
        ("machine", machine(results)),
        ("goals", goals::table(results).markdown()),
        ("grain", grain::table(results)),
        ("callers", callers::table(results)),
        ("payload", payload(results)),
        ("handover", batches::handover(results)),
        ("loader", batches::loader(results)),
        ("async", awaiting::table(results)),
        ("service", service::table(results)),
        ("cluster", cluster::table(results)),
        ("cluster-idle", cluster::idle(results)),
        ("peers", peers(results)),
        ("summary", summary(results)),
    ]
}

/// Prints all figures, the goals, and the figures that were not measured.
pub(crate) fn print(results: &Results) {
    println!("\n{}", listing(results));
    println!("Goals\n\n{}", goals::listing(results));
    let missing = missing(results);
    if !missing.is_empty() {
        println!("Not measured\n\n{missing}");
    }
}

/// Returns all figures, one per line, for the terminal.
fn listing(results: &Results) -> String {
    let mut table =
        Table::new(3, &["section", "figure", "contestant", "median (lowest to highest)"]);
    for figure in &results.figures {
        let (name, unit) = split(&figure.name);
        if let Some(summary) =
            results.summary(key(&figure.section, &figure.name, &figure.contestant))
        {
            let (section, contestant) = (figure.section.clone(), figure.contestant.clone());
            table.add(vec![section, name, contestant, unit.summary(summary)]);
        }
    }
    format!("{}\n{}", machine(results), table.text())
}

/// Returns the figures that were not measured, with the reasons.
fn missing(results: &Results) -> String {
    let mut table = Table::new(4, &["section", "figure", "contestant", "reason"]);
    for missing in &results.missing {
        let name = if missing.name == "*" { "all".to_owned() } else { split(&missing.name).0 };
        table.add(vec![
            missing.section.clone(),
            name,
            missing.contestant.clone(),
            missing.reason.clone(),
        ]);
    }
    if table.is_empty() { String::new() } else { table.text() }
}

/// Returns sentences about the machine, the programs and the commit.
fn machine(results: &Results) -> String {
    let fact = |name: &str| {
        let found = results.facts.iter().find(|(known, _)| known == name);
        found.map_or("unknown", |(_, value)| value.as_str())
    };
    let versions: Vec<String> = results
        .versions
        .iter()
        .filter(|(contestant, _)| !["ipc", "unrecorded"].contains(&contestant.as_str()))
        .map(|(contestant, version)| match contestant.as_str() {
            "ring" => format!("Brigade {version}"),
            contestant => format!("{contestant} {version}"),
        })
        .collect();
    format!(
        "Machine: {}, {} cores, {}, {}; load average before the run {}.\nPrograms: {}, {}, {}.\nCommit {} of {}; {}.\n",
        fact("processor"),
        fact("cores"),
        fact("memory"),
        fact("kernel"),
        fact("load average before"),
        fact("rustc"),
        fact("python"),
        versions.join(", "),
        fact("commit"),
        fact("date"),
        fact("run")
    )
}

/// Returns payloads by size, with multiples of one warm copy of the same size.
fn payload(results: &Results) -> String {
    let mut table = Table::new(1, &["payload", "copy", "rings", "copies", "ipc", "copies"]);
    let sizes = sizes(results, "payload");
    for way in ["in", "out"] {
        for size in &sizes {
            let (name, copy) = (format!("{way}_{size}_seconds"), format!("copy_{size}_seconds"));
            let cell = |name: &str, who| cell(results, "payload", name, who, Unit::Seconds);
            let multiple = |link| {
                let over = key("payload", &name, link);
                let ratio = results.ratio(over, key("payload", &copy, "raw"));
                ratio.map_or_else(|| NOTHING.to_owned(), |ratio| Unit::Times.value(ratio.median))
            };
            table.add(vec![
                split(&name).0,
                cell(&copy, "raw"),
                cell(&name, "ring"),
                multiple("ring"),
                cell(&name, "ipc"),
                multiple("ipc"),
            ]);
        }
    }
    table.markdown()
}

/// Returns the sizes in the names of a section's figures, in order.
fn sizes(results: &Results, section: &str) -> Vec<u64> {
    let figures = results.figures.iter().filter(|figure| figure.section == section);
    let sizes = figures.filter_map(|figure| {
        let (_, size) = figure.name.strip_suffix("_seconds")?.rsplit_once('_')?;
        size.parse().ok()
    });
    sizes.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The figures by which peers are compared: section, name and description.
const COMPARED: &[(&str, &str, &str)] = &[
    ("throughput", "each_per_second", "no-op tasks one by one"),
    ("throughput", "map_per_second", "map of no-ops, in chunks"),
    ("latency", "round_trip_p50_seconds", "round trip, p50"),
    ("latency", "round_trip_p99_seconds", "round trip, p99"),
    ("payload", "in_16777216_seconds", "16 MiB in"),
    ("payload", "out_16777216_seconds", "16 MiB out"),
    ("start", "first_results_2_seconds", "start to the first results, 2 workers"),
    ("start", "first_results_16_seconds", "start to the first results, 16 workers"),
    ("crash", "learned_p50_seconds", "killed worker: the caller learns of it"),
    ("crash", "recovered_p50_seconds", "killed worker: a replacement has run a task"),
    ("fresh", "tasks_per_second", "tasks with a process each"),
    ("work", "files_seconds", "SHA-256 of many small files"),
];

fn peers(results: &Results) -> String {
    let peers = results.peers();
    let mut heading = vec!["2 workers unless stated", "Brigade"];
    heading.extend(&peers);
    let mut table = Table::new(1, &heading);
    for (section, name, what) in COMPARED {
        let unit = split(name).1;
        let mut row = vec![(*what).to_owned(), cell(results, section, name, "ring", unit)];
        row.extend(peers.iter().map(|peer| cell(results, section, name, peer, unit)));
        table.add(row);
    }
    table.markdown()
}

/// The peers of the short table: the one that is a crate, and those of Python's standard library.
const SHORT: [&str; 3] = ["procspawn", "concurrent.futures", "multiprocessing"];

/// Returns the short table for README.md.
fn summary(results: &Results) -> String {
    let [procspawn, futures, pool] = SHORT.map(|peer| format!("`{peer}`"));
    let heading = ["2 workers unless stated", "Brigade", &procspawn, &futures, &pool];
    let mut table = Table::new(1, &heading);
    for (section, name, what) in COMPARED {
        let unit = split(name).1;
        let cell = |contestant| cell(results, section, name, contestant, unit);
        let mut row = vec![(*what).to_owned(), cell("ring")];
        row.extend(SHORT.map(cell));
        table.add(row);
    }
    table.markdown()
}

/// A cell without a figure and without a reason.
const NOTHING: &str = "–";

/// Returns the median of a figure, or why it was not measured, without what is in parentheses.
fn cell(results: &Results, section: &str, name: &str, contestant: &str, unit: Unit) -> String {
    let key = key(section, name, contestant);
    let median = results.summary(key).map(|summary| unit.value(summary.median));
    let reason = || Some(results.reason(key)?.split(" (").next()?.to_owned());
    median.or_else(reason).unwrap_or_else(|| NOTHING.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{blocks, listing, missing};
    use crate::results::Results;

    fn results() -> Results {
        let mut results = Results::new(2)
            .with("payload", "in_1024_seconds", "ring", [4e-6, 4e-6].map(Some))
            .with("payload", "copy_1024_seconds", "raw", [2e-6, 1e-6].map(Some))
            .with("throughput", "each_per_second", "ring", [1e6, 2e6].map(Some))
            .with("throughput", "each_per_second", "loky", [1e4, 1e4].map(Some))
            .without("crash", "recovered_p50_seconds", "loky", "does not survive");
        results.add_fact("cores", "2");
        for (contestant, version) in [("ring", "0.1.0"), ("loky", "3.7.0")] {
            results.versions.insert(contestant.to_owned(), version.to_owned());
        }
        results
    }

    fn block(name: &str) -> String {
        let blocks = blocks(&results());
        blocks.into_iter().find(|(known, _)| *known == name).unwrap().1
    }

    #[test]
    fn payloads_are_multiples_of_a_copy() {
        assert!(block("payload").contains("| 3.00x |"), "{}", block("payload"));
    }

    #[test]
    fn missing_figures_have_a_reason() {
        assert!(block("peers").contains("does not survive"), "{}", block("peers"));
        let missing = missing(&results());
        assert!(missing.contains("recovered p50  ") && missing.contains("loky"), "{missing}");
    }

    #[test]
    fn all_figures_are_listed_with_their_range() {
        let listing = listing(&results());
        assert!(listing.contains("1,500,000/s (1,000,000/s to 2,000,000/s)"), "{listing}");
        assert!(
            listing.contains("2 cores") && listing.contains("Brigade 0.1.0, loky 3.7.0")
                || listing.contains("loky 3.7.0, Brigade 0.1.0"),
            "{listing}"
        );
    }
}
