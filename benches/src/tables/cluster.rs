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
    ("r1_even_percent", "tasks of 10 ms on two nodes with one worker each, share of the ideal"),
    ("r1_payloads_per_second", "payloads of 4 MiB, in and out"),
    ("r3_each_per_second", "three servers: no-ops one by one"),
    ("r3_map_per_second", "map of no-ops"),
    ("r3_round_trip_p50_seconds", "round trip, p50"),
    ("r3_round_trip_p99_seconds", "round trip, p99"),
    ("r3_even_percent", "tasks of 10 ms on two nodes with one worker each, share of the ideal"),
    ("r3_payloads_per_second", "payloads of 4 MiB, in and out"),
    ("idle_cpu_per_minute_seconds", "an idle node: CPU time in a minute"),
    ("idle_messages_per_minute_count", "an idle node: messages in a minute"),
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
