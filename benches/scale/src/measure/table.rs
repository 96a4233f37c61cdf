//! Tables on the terminal: a row for each figure.

use super::section::Section;
use crate::figures::{Case, Measured};

/// The table of a section.
pub(super) struct Table {
    cores: u32,
}

impl Table {
    /// Prints the head.
    pub(super) fn new(section: Section, cores: u32) -> Self {
        let threads = if section == Section::Callers { "callers" } else { "submitters" };
        if section == Section::Costs {
            println!("| costs | of | ns |\n|---|---:|---:|");
        } else {
            println!(
                "| {} | {threads} | task | per second | slowest to fastest lap | share of cores \
                 | plain threads | their share | p99 |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|",
                section.name()
            );
        }
        Self { cores }
    }

    pub(super) fn print(&mut self, measured: &Measured) {
        match measured {
            Measured::Cost(cost) => {
                println!("| {} | {} | {:.1} |", cost.name, cost.of, cost.nanoseconds);
            }
            Measured::Case(case) => self.print_case(case),
        }
    }

    fn print_case(&self, case: &Case) {
        let share = |rate| {
            let share = case.share(rate, self.cores);
            share.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", 100.0 * share))
        };
        println!(
            "| {} workers | {} | {} µs | {} | {} to {} | {} | {} | {} | {} |",
            case.workers,
            case.submitters,
            case.micros,
            rate(case.per_second),
            rate(case.range.0),
            rate(case.range.1),
            share(case.per_second),
            rate(case.raw_per_second),
            share(case.raw_per_second),
            case.p99_micros.map_or_else(|| "–".to_owned(), |p99| format!("{p99:.1} µs")),
        );
    }
}

/// Returns a rate with three digits.
fn rate(per_second: f64) -> String {
    match per_second {
        1e6.. => format!("{:.2} M", per_second / 1e6),
        1e3.. => format!("{:.1} k", per_second / 1e3),
        _ => format!("{per_second:.0}"),
    }
}
