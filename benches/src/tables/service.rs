//! The table of the example `service` under load.

use super::cell;
use super::table::Table;
use super::unit::split;
use crate::results::Results;

const ROWS: &[(&str, &str)] = &[
    ("plain_per_second", "requests"),
    ("plain_p99_seconds", "p99 of a request"),
    ("crashing_per_second", "requests, one in a thousand crashes the decoder"),
    ("crashing_p99_seconds", "p99 of a request then"),
];

pub(super) fn table(results: &Results) -> String {
    let heading = ["2 workers", "Brigade, rings", "Brigade, ipc", "`spawn_blocking`"];
    let mut table = Table::new(1, &heading);
    for (name, what) in ROWS {
        let mut row = vec![(*what).to_owned()];
        let contestants = ["ring", "ipc", "tokio"];
        row.extend(contestants.map(|who| cell(results, "service", name, who, split(name).1)));
        table.add(row);
    }
    table.markdown()
}
