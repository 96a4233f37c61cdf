//! The table about threads that call, wait and call again.

use super::cell;
use super::table::Table;
use super::unit::split;
use crate::results::Results;

/// The contestants, and their headings.
const CONTESTANTS: &[(&str, &str)] = &[
    ("ring", "Brigade, rings"),
    ("ipc", "Brigade, ipc"),
    ("raw", "two threads, `std` channels"),
    ("rayon", "rayon"),
    ("procspawn", "procspawn"),
    ("multiprocessing", "`multiprocessing.Pool`"),
    ("concurrent.futures", "`ProcessPoolExecutor`"),
];

/// The numbers of callers that are shown.
const CALLERS: [usize; 3] = [1, 16, 64];

/// The ends of the figures' names, and their descriptions.
const FIGURES: &[(&str, &str)] =
    &[("per_second", "calls"), ("p50_seconds", "p50"), ("p99_seconds", "p99")];

/// Returns calls per second, and the time of a call, by number of callers.
pub(super) fn table(results: &Results) -> String {
    let mut heading = vec!["callers"];
    heading.extend(CONTESTANTS.iter().map(|(_, title)| *title));
    let mut table = Table::new(1, &heading);
    for callers in CALLERS {
        for (end, title) in FIGURES {
            let name = format!("callers_{callers}_{end}");
            let mut row = vec![format!("{callers}: {title}")];
            let unit = split(&name).1;
            row.extend(
                CONTESTANTS.iter().map(|(who, _)| cell(results, "callers", &name, who, unit)),
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
    fn each_number_of_callers_has_a_rate_and_two_times() {
        let table =
            table(
                &Results::new(1)
                    .with("callers", "callers_64_per_second", "ring", [Some(4e5)])
                    .with("callers", "callers_16_p99_seconds", "raw", [Some(2e-5)]),
            );
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(rows.len(), 9, "{table}");
        assert!(rows[5].starts_with("| 16: p99 | – | – | 20.0 µs |"), "{table}");
        assert!(rows[6].starts_with("| 64: calls | 400,000/s |"), "{table}");
    }
}
