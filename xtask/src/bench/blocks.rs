//! What is printed, and the named parts that go into the documents.

use std::fmt::Write;

use super::figures::{Figures, key};
use super::goals;
use super::table::Table;
use super::unit::{Unit, split};

/// Every part by its name in the markers.
pub(super) fn all(figures: &Figures) -> Vec<(&'static str, String)> {
    vec![
        ("machine", machine(figures)),
        ("goals", goals::table(figures).markdown()),
        ("raw", raw(figures)),
        ("links", links(figures)),
        ("payload", payload(figures)),
        ("peers", peers(figures)),
        ("summary", summary(figures)),
    ]
}

/// All figures, a line each, for the terminal.
pub(super) fn listing(figures: &Figures) -> String {
    let mut table =
        Table::new(3, &["section", "figure", "contestant", "median (lowest to highest)"]);
    for row in &figures.rows {
        let (name, unit) = split(&row.name);
        if let Some(summary) = figures.summary(key(&row.section, &row.name, &row.contestant)) {
            let (section, contestant) = (row.section.clone(), row.contestant.clone());
            table.add(vec![section, name, contestant, unit.summary(summary)]);
        }
    }
    format!("{}\n{}", machine(figures), table.text())
}

/// What has no figure, with the reason.
pub(super) fn missing(figures: &Figures) -> String {
    let mut table = Table::new(4, &["section", "figure", "contestant", "reason"]);
    for gap in &figures.gaps {
        let name = if gap.name == "*" { "all".to_owned() } else { split(&gap.name).0 };
        table.add(vec![gap.section.clone(), name, gap.contestant.clone(), gap.reason.clone()]);
    }
    if table.is_empty() { String::new() } else { table.text() }
}

/// Where and with what the figures were made, a sentence each.
fn machine(figures: &Figures) -> String {
    let fact = |name: &str| {
        let found = figures.facts.iter().find(|(known, _)| known == name);
        found.map_or("unknown", |(_, value)| value.as_str())
    };
    let versions: Vec<String> = figures
        .versions
        .iter()
        .filter(|(contestant, _)| *contestant != "ipc")
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

/// What the machine gives without a pool.
fn raw(figures: &Figures) -> String {
    let mut table = Table::new(1, &["raw limit", "median (lowest to highest)"]);
    for row in figures.rows.iter().filter(|row| row.contestant == "raw") {
        let (name, unit) = split(&row.name);
        if let Some(summary) = figures.summary(key(&row.section, &row.name, "raw")) {
            table.add(vec![format!("{}: {name}", row.section), unit.summary(summary)]);
        }
    }
    table.markdown()
}

/// Brigade over both links; payloads have a table of their own.
fn links(figures: &Figures) -> String {
    let mut table = Table::new(1, &["2 workers unless said", "rings", "ipc"]);
    for row in &figures.rows {
        if row.contestant == "ring" && row.section != "payload" {
            let (name, unit) = split(&row.name);
            let cell = |link| cell(figures, &row.section, &row.name, link, unit);
            table.add(vec![format!("{}: {name}", row.section), cell("ring"), cell("ipc")]);
        }
    }
    table.markdown()
}

/// Payloads by size, also as multiples of one warm copy of the same size.
fn payload(figures: &Figures) -> String {
    let mut table = Table::new(1, &["payload", "copy", "rings", "copies", "ipc", "copies"]);
    let sizes = figures.rows.iter().filter_map(|row| {
        let size = row.name.strip_prefix("copy_").filter(|_| row.section == "payload")?;
        size.strip_suffix("_seconds")?.parse::<u64>().ok()
    });
    let mut sizes: Vec<u64> = sizes.collect();
    sizes.sort_unstable();
    for way in ["in", "out"] {
        for size in &sizes {
            let (name, copy) = (format!("{way}_{size}_seconds"), format!("copy_{size}_seconds"));
            let cell = |name: &str, who| cell(figures, "payload", name, who, Unit::Seconds);
            let multiple = |link| {
                let over = key("payload", &name, link);
                let ratio = figures.ratio(over, key("payload", &copy, "raw"));
                ratio.map_or_else(|| NOTHING.to_owned(), |ratio| Unit::Times.summary(ratio))
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

/// What peers are compared by.
const COMPARED: &[(&str, &str, &str)] = &[
    ("throughput", "each_per_second", "no-op tasks one by one"),
    ("throughput", "map_per_second", "map of no-ops, in chunks"),
    ("latency", "round_trip_p50_seconds", "round trip, p50"),
    ("latency", "round_trip_p99_seconds", "round trip, p99"),
    ("payload", "in_16777216_seconds", "16 MiB in"),
    ("payload", "out_16777216_seconds", "16 MiB out"),
    ("start", "first_results_2_seconds", "start to the first results, 2 workers"),
    ("start", "first_results_16_seconds", "start to the first results, 16 workers"),
    ("crash", "learned_p50_seconds", "killed worker: the caller knows"),
    ("crash", "recovered_p50_seconds", "killed worker: a replacement has run a task"),
    ("work", "files_seconds", "SHA-256 of many small files"),
];

fn peers(figures: &Figures) -> String {
    let peers = figures.peers();
    let mut heading = vec!["2 workers unless said", "Brigade"];
    heading.extend(&peers);
    let mut table = Table::new(1, &heading);
    for (section, name, what) in COMPARED {
        let unit = split(name).1;
        let mut row = vec![(*what).to_owned(), cell(figures, section, name, "ring", unit)];
        row.extend(peers.iter().map(|peer| cell(figures, section, name, peer, unit)));
        table.add(row);
    }
    table.markdown()
}

/// The short table of the first page.
fn summary(figures: &Figures) -> String {
    let mut table = Table::new(1, &["2 workers", "Brigade", "`concurrent.futures`", "ratio"]);
    for (section, name, what) in COMPARED {
        let unit = split(name).1;
        let (ours, theirs) = (key(section, name, "ring"), key(section, name, "concurrent.futures"));
        let ratio = match unit {
            Unit::Seconds => figures.ratio(theirs, ours),
            _ => figures.ratio(ours, theirs),
        };
        let median = |key| figures.summary(key).map(|summary| unit.value(summary.median));
        let theirs = median(theirs).or_else(|| figures.reason(theirs).map(str::to_owned));
        table.add(vec![
            (*what).to_owned(),
            median(ours).unwrap_or_else(|| NOTHING.to_owned()),
            theirs.unwrap_or_else(|| NOTHING.to_owned()),
            ratio.map_or_else(|| NOTHING.to_owned(), |ratio| Unit::Times.value(ratio.median)),
        ]);
    }
    table.markdown()
}

/// Stands where there is no figure and no reason.
const NOTHING: &str = "–";

/// A figure, or why there is none.
fn cell(figures: &Figures, section: &str, name: &str, contestant: &str, unit: Unit) -> String {
    let key = key(section, name, contestant);
    let mut text = String::new();
    match (figures.summary(key), figures.reason(key)) {
        (Some(summary), _) => text.push_str(&unit.summary(summary)),
        // Writing to a string does not fail.
        (None, Some(reason)) => drop(write!(text, "not measured: {reason}")),
        (None, None) => text.push_str(NOTHING),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{all, listing, missing};
    use crate::bench::figures::Figures;

    const TEXT: &str = "fact\tcores\t2\nversion\tring\t0.1.0\nversion\tloky\t3.7.0\n\
        figure\tpayload\tin_1024_seconds\tring\t4e-6\t4e-6\n\
        figure\tpayload\tcopy_1024_seconds\traw\t2e-6\t1e-6\n\
        figure\tthroughput\teach_per_second\tring\t1e6\t2e6\n\
        figure\tthroughput\teach_per_second\tloky\t1e4\t1e4\n\
        missing\tcrash\trecovered_p50_seconds\tloky\tdoes not survive\n";

    fn block(name: &str) -> String {
        let blocks = all(&Figures::parse(TEXT).unwrap());
        blocks.into_iter().find(|(known, _)| *known == name).unwrap().1
    }

    #[test]
    fn payloads_are_multiples_of_a_copy() {
        assert!(block("payload").contains("| 3.00x (2.00x to 4.00x) |"), "{}", block("payload"));
    }

    #[test]
    fn what_is_missing_says_why() {
        assert!(block("peers").contains("does not survive"), "{}", block("peers"));
        let missing = missing(&Figures::parse(TEXT).unwrap());
        assert!(missing.contains("recovered p50  ") && missing.contains("loky"), "{missing}");
    }

    #[test]
    fn all_that_was_measured_is_listed_with_its_spread() {
        let listing = listing(&Figures::parse(TEXT).unwrap());
        assert!(listing.contains("1,500,000/s (1,000,000/s to 2,000,000/s)"), "{listing}");
        assert!(
            listing.contains("2 cores") && listing.contains("Brigade 0.1.0, loky 3.7.0")
                || listing.contains("loky 3.7.0, Brigade 0.1.0"),
            "{listing}"
        );
    }
}
