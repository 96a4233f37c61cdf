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
    ("r1_even_percent", "tasks of 10 ms on two nodes with one worker each, share of the ideal"),
    ("r1_payloads_per_second", "payloads of 4 MiB, in and out"),
    ("r3_each_per_second", "three servers: no-ops one by one"),
    ("r3_map_per_second", "map of no-ops"),
    ("r3_round_trip_p50_seconds", "round trip, p50"),
    ("r3_even_percent", "tasks of 10 ms on two nodes with one worker each, share of the ideal"),
    ("r3_payloads_per_second", "payloads of 4 MiB, in and out"),
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

/// The figures of a minute without tasks.
const IDLE_ROWS: &[(&str, &str)] = &[
    ("node_messages_count", "a node: messages, sent and received"),
    ("client_messages_count", "a client: messages, sent and received"),
    ("node_cpu_seconds", "a node: CPU time"),
    ("client_cpu_seconds", "a client: CPU time"),
    ("servers_cpu_seconds", "all servers: CPU time"),
];

pub(super) fn idle(results: &Results) -> String {
    let heading = ["a minute without tasks", "one server: the first", "a later one"];
    let mut table =
        Table::new(1, &[&heading[..], &["three servers: the first", "a later one"]].concat());
    for (name, what) in IDLE_ROWS {
        let unit = split(name).1;
        let windows = ["r1_first", "r1_later", "r3_first", "r3_later"];
        let figures = windows.map(|window| format!("{window}_{name}"));
        let cells = figures.map(|figure| cell(results, "cluster-idle", &figure, "ring", unit));
        table.add([vec![(*what).to_owned()], cells.to_vec()].concat());
    }
    table.markdown()
}
