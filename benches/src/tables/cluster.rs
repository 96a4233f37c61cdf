//! The table of tasks that travel through servers.

use super::cell;
use super::table::Table;
use super::unit::split;
use crate::results::Results;

/// The contestants, and their headings.
const CONTESTANTS: &[(&str, &str)] = &[
    ("ring", "Brigade, rings"),
    ("raw", "the transport alone"),
    ("celery", "Celery, Redis"),
    ("dask", "Dask distributed"),
    ("ray", "Ray"),
];

/// The figures' names and descriptions.
const ROWS: &[(&str, &str)] = &[
    ("r1_each_per_second", "one server: no-ops one by one"),
    ("r1_map_per_second", "map of no-ops"),
    ("r1_round_trip_p50_seconds", "round trip, p50"),
    ("r1_round_trip_p99_seconds", "round trip, p99"),
    ("r3_each_per_second", "three servers: no-ops one by one"),
    ("r3_map_per_second", "map of no-ops"),
    ("r3_round_trip_p50_seconds", "round trip, p50"),
    ("r3_round_trip_p99_seconds", "round trip, p99"),
];

pub(super) fn table(results: &Results) -> String {
    let mut heading = vec!["2 workers, servers and client on the same cores"];
    heading.extend(CONTESTANTS.iter().map(|(_, title)| *title));
    let mut table = Table::new(1, &heading);
    for (name, what) in ROWS {
        let unit = split(name).1;
        let mut row = vec![(*what).to_owned()];
        row.extend(CONTESTANTS.iter().map(|(who, _)| cell(results, "cluster", name, who, unit)));
        table.add(row);
    }
    table.markdown()
}
