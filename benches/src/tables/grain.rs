//! The table about tasks that keep a core busy for a short time.

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

/// The durations that are shown, in microseconds.
const DURATIONS: [u64; 4] = [1, 10, 100, 1000];

/// Returns the share of two cores that the tasks get, by their duration.
pub(super) fn table(results: &Results) -> String {
    let mut heading = vec!["tasks"];
    heading.extend(CONTESTANTS.iter().map(|(_, title)| *title));
    let mut table = Table::new(1, &heading);
    for (way, title) in [("each", "one by one"), ("map", "map")] {
        for micros in DURATIONS {
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

#[cfg(test)]
mod tests {
    use super::table;
    use crate::results::Results;

    #[test]
    fn durations_are_rows_in_order_for_each_way() {
        let table = table(
            &Results::new(1).with("grain", "each_1000_us_percent", "ring", [Some(99.5)]).with(
                "grain",
                "map_10_us_percent",
                "rayon",
                [Some(95.0)],
            ),
        );
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(rows.len(), 8, "{table}");
        assert!(rows[3].starts_with("| one by one, 1000 µs | 99.5 % | – |"), "{table}");
        assert!(rows[5].starts_with("| map, 10 µs | – | – | – | 95.0 % |"), "{table}");
    }
}
