//! The table of calls that tasks of an async runtime await.

use super::cell;
use super::table::Table;
use super::unit::split;
use crate::results::Results;

const ROWS: &[(&str, &str)] = &[
    ("await_p50_seconds", "one task, one call after the other, p50"),
    ("await_p99_seconds", "the same, p99"),
    ("await_256_per_second", "256 tasks on one thread"),
    ("await_256_threads_per_second", "256 tasks on two threads"),
];

pub(super) fn table(results: &Results) -> String {
    let heading = ["tokio", "Brigade, rings", "Brigade, ipc", "`spawn_blocking`", "procspawn"];
    let mut table = Table::new(1, &heading);
    for (name, what) in ROWS {
        let mut row = vec![(*what).to_owned()];
        let contestants = ["ring", "ipc", "tokio", "procspawn"];
        row.extend(contestants.map(|who| cell(results, "async", name, who, split(name).1)));
        table.add(row);
    }
    table.markdown()
}
