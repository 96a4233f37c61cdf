//! The table about tasks that keep a core busy for a short time.

use std::collections::BTreeSet;

use super::cell;
use super::table::Table;
use super::unit::Unit;
use crate::results::Results;

/// The contestants, and their headings.
const CONTESTANTS: &[(&str, &str)] = &[
    ("ring", "Brigade, rings"),
    ("ipc", "Brigade, ipc"),
    ("raw", "two plain threads"),
    ("rayon", "rayon"),
    ("procspawn", "procspawn"),
    ("multiprocessing", "`multiprocessing.Pool`"),
    ("concurrent.futures", "`ProcessPoolExecutor`"),
];

/// Returns the share of two cores that the tasks get, by their duration.
pub(super) fn table(results: &Results) -> String {
    let mut heading = vec!["tasks"];
    heading.extend(CONTESTANTS.iter().map(|(_, title)| *title));
    let mut table = Table::new(1, &heading);
    for (way, title) in [("each", "one by one"), ("limited", "queue of 100"), ("map", "map")] {
        for micros in durations(results) {
            let name = format!("{way}_{micros}_us_percent");
            let mut row = vec![format!("{title}, {micros} µs")];
            row.extend(
                CONTESTANTS
                    .iter()
                    .map(|(who, _)| cell(results, "grain", &name, who, Unit::Percent)),
            );
            table.add(row);
        }
    }
    table.markdown()
}

/// Returns the durations in the names of the figures, in order.
fn durations(results: &Results) -> BTreeSet<u64> {
    let figures = results.figures.iter().filter(|figure| figure.section == "grain");
    let durations = figures.filter_map(|figure| {
        let (_, micros) = figure.name.strip_suffix("_us_percent")?.split_once('_')?;
        micros.parse().ok()
    });
    durations.collect()
}

#[cfg(test)]
mod tests {
    use super::table;
    use crate::results::Results;

    #[test]
    fn durations_are_rows_in_order_for_each_way() {
        let table = table(
            &Results::new(1).with("grain", "each_1000_us_percent", "ring", [Some(99.5)]).with(
                "grain",
                "map_3_us_percent",
                "rayon",
                [Some(95.0)],
            ),
        );
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(rows.len(), 6, "{table}");
        assert!(rows[1].starts_with("| one by one, 1000 µs | 99.5 % | – |"), "{table}");
        assert!(rows[4].starts_with("| map, 3 µs | – | – | – | 95.0 % |"), "{table}");
    }
}
