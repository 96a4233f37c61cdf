//! The tables about large results: their hand-over, and the loader of pictures.

use super::table::Table;
use super::unit::{Unit, split};
use super::{cell, sizes};
use crate::results::Results;

/// The ways to hand over a result: contestant, first word of its figures, and heading.
const WAYS: &[(&str, &str, &str)] = &[
    ("ring", "trusted", "trusted"),
    ("ring", "read_only", "read-only"),
    ("ring", "copied", "copied"),
    ("ring", "vec", "`Vec<u8>`"),
    ("concurrent.futures", "array", "`ProcessPoolExecutor`, numpy"),
    ("multiprocessing", "segment", "`shared_memory` by hand"),
    ("iceoryx2", "sample", "iceoryx2"),
];

/// Returns the time of a hand-over by size.
pub(super) fn handover(results: &Results) -> String {
    let mut heading = vec!["size"];
    heading.extend(WAYS.iter().map(|(_, _, title)| *title));
    let mut table = Table::new(1, &heading);
    for size in sizes(results, "handover") {
        let mut row = vec![split(&size.to_string()).0];
        row.extend(WAYS.iter().map(|(contestant, way, _)| {
            let name = format!("{way}_{size}_seconds");
            cell(results, "handover", &name, contestant, Unit::Seconds)
        }));
        table.add(row);
    }
    table.markdown()
}

/// The contestants of the loader, and their headings.
const LOADERS: &[(&str, &str)] = &[
    ("ring", "Brigade, rings"),
    ("ipc", "Brigade, ipc"),
    ("rayon", "threads"),
    ("multiprocessing", "`multiprocessing`, numpy"),
];

/// Returns the rate and the hand-over of the loader.
pub(super) fn loader(results: &Results) -> String {
    let mut heading = vec!["2 workers"];
    heading.extend(LOADERS.iter().map(|(_, title)| *title));
    let mut table = Table::new(1, &heading);
    for (name, what) in
        [("images_per_second", "pictures"), ("hand_over_p50_seconds", "hand-over of a batch, p50")]
    {
        let mut row = vec![what.to_owned()];
        let cells =
            LOADERS.iter().map(|(who, _)| cell(results, "loader", name, who, split(name).1));
        row.extend(cells);
        table.add(row);
    }
    table.markdown()
}

#[cfg(test)]
mod tests {
    use super::{handover, loader};
    use crate::results::Results;

    #[test]
    fn sizes_are_rows_in_order_and_ways_are_columns() {
        let table = handover(
            &Results::new(1)
                .with("handover", "trusted_1073741824_seconds", "ring", [Some(2e-6)])
                .with("handover", "vec_65536_seconds", "ring", [Some(3e-6)])
                .without("handover", "*", "multiprocessing", "not installed (no numpy)"),
        );
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert!(rows[0].starts_with("| 64 KiB | – | – | – | 3.00 µs |"), "{table}");
        assert!(rows[0].contains("| not installed |"), "{table}");
        assert!(rows[1].starts_with("| 1 GiB | 2.00 µs |"), "{table}");
    }

    #[test]
    fn the_loader_is_compared_with_threads() {
        let results = Results::new(1).with("loader", "images_per_second", "rayon", [Some(512.0)]);
        assert!(loader(&results).contains("| 512/s |"), "{}", loader(&results));
    }
}
