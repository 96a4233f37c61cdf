//! The summary of a run: number of jobs, use of the cores, slowest jobs, failures.

use std::fmt::Write;
use std::time::Duration;

use super::Statistics;
use super::text::{Tint, fit, seconds};

/// Maximum length of lines without a terminal.
const NO_TERMINAL: usize = 200;

pub(super) fn text(statistics: &Statistics, wall: Duration, is_full: bool, tint: Tint) -> String {
    let terminal = console::Term::stderr();
    let width = terminal.size_checked().map_or(NO_TERMINAL, |(_, width)| usize::from(width));
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_summary(&mut text, statistics, wall, is_full, tint, width);
    text
}

fn write_summary(
    text: &mut String,
    statistics: &Statistics,
    wall: Duration,
    is_full: bool,
    tint: Tint,
    width: usize,
) -> std::fmt::Result {
    let succeeded = tint.good(&format!("{} succeeded", statistics.succeeded));
    let failed = format!("{} failed", statistics.failed);
    let failed = if statistics.failed > 0 { tint.bad(&failed) } else { failed };
    let jobs = statistics.finished_count();
    let noun = if jobs == 1 { "job" } else { "jobs" };
    write!(text, "brigade: {jobs} {noun} in {}: {succeeded}, {failed}", seconds(wall))?;
    if statistics.supply.skipped > 0 {
        write!(text, ", {} already done", statistics.supply.skipped)?;
    }
    if let Some((leased, busy)) = statistics.utilization(wall)
        && is_full
        && !statistics.is_remote
    {
        let (cores, used) = (statistics.cores(), leased * 100.0);
        let ending = if cores == 1 { "" } else { "s" };
        let (noun, of_what) = if statistics.is_pinned { ("core", "") } else { ("slot", " cores") };
        write!(text, "\n{cores} {noun}{ending}: {used:.0} % used")?;
        write!(text, ", {busy:.1}{of_what} busy on average")?;
    }
    writeln!(text)?;
    if is_full {
        for line in statistics.hosts.lines() {
            writeln!(text, "  {line}")?;
        }
    }
    if is_full && jobs > 1 {
        writeln!(text, "slowest:")?;
        for (wall, number, name) in &statistics.slowest {
            let line = format!("  {:>6}  job {number}  {name}", seconds(*wall));
            writeln!(text, "{}", fit(&line, width))?;
        }
    }
    if !is_full || statistics.failed == 0 {
        // Without a terminal each failure was printed together with its output.
        return Ok(());
    }
    writeln!(text, "failures:")?;
    for failure in &statistics.failures {
        let (number, wall) = (failure.number, seconds(failure.wall));
        let line = format!("  job {number} ({}, {wall}): {}", failure.ending, failure.name);
        writeln!(text, "{}", fit(&line, width))?;
        for line in &failure.last_lines {
            writeln!(text, "{}", tint.faint(&fit(&format!("    | {line}"), width)))?;
        }
    }
    let named = statistics.failures.len() as u64;
    if statistics.failed > named {
        writeln!(text, "  and {} more", statistics.failed - named)?;
    }
    Ok(())
}
