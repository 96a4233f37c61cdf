//! The lines of the progress area: a bar, the running jobs, and what the run waits for.

use brigade::cores::CpuSet;

use super::Statistics;
use super::statistics::Running;
use super::text::{Tint, fit, seconds, waiting_for};

/// Maximum number of running jobs that are listed; the others are only counted.
const MAX_JOBS: usize = 8;
/// Below this width only the most important parts are shown.
const NARROW: usize = 60;
/// A narrower bar says too little.
const MIN_BAR: usize = 6;
/// The parts of a character cell, in eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Returns lines that fit into a terminal of this width, at most `height` of them if that is
/// enough for one job.
pub(super) fn lines(
    statistics: &Statistics,
    height: usize,
    width: usize,
    tint: Tint,
) -> Vec<String> {
    // Some terminals wrap a line that is as wide as they are.
    let width = width.saturating_sub(1);
    let mut lines = vec![bar(statistics, width, tint)];
    let room = height.saturating_sub(1).clamp(1, MAX_JOBS);
    let mut running: Vec<&Running> = statistics.running.values().collect();
    let hidden = running.len().saturating_sub(room);
    if hidden > 0 {
        // The oldest are the ones to look at.
        running.sort_by_key(|job| job.since);
        running.truncate(room);
    }
    lines.extend(job_lines(&running, width));
    if hidden > 0 {
        lines.push(format!("  and {hidden} more"));
    }
    lines.extend(statistics.hosts.lines().iter().map(|line| format!("  {line}")));
    if let Some(need) = statistics.need {
        lines.push(format!("  {}", waiting_for(need)));
    }
    lines.into_iter().map(|line| fit(&line, width)).collect()
}

fn bar(statistics: &Statistics, width: usize, tint: Tint) -> String {
    let done = statistics.finished_count();
    let mut parts = Vec::new();
    let failed = statistics.failed;
    if failed > 0 {
        parts.push(tint.bad(&format!("{failed} failed")));
    }
    let running = statistics.running.len();
    let elapsed = seconds(statistics.elapsed());
    let left = statistics.rest().map(seconds);
    if width < NARROW {
        parts.push(format!("{running} running"));
        parts.push(left.map_or(elapsed, |left| format!("{left} left")));
    } else {
        parts.push(if statistics.is_remote {
            format!("{running} running")
        } else {
            format!("{running}/{} running", statistics.slots)
        });
        parts.push(format!("{elapsed} elapsed"));
        parts.extend(left.map(|left| format!("{left} left")));
    }
    let text = parts.join(", ");
    let Some(total) = statistics.total() else {
        return format!("{done} of {}+ so far, {text}", statistics.known());
    };
    let count = format!("{done}/{total}");
    let used = console::measure_text_width(&format!("{count}  {text}"));
    match width.saturating_sub(used) {
        room if room >= MIN_BAR => format!("{count} {} {text}", blocks(done, total, room)),
        _ => format!("{count} {text}"),
    }
}

/// Returns a bar of `width` cells.
fn blocks(done: u64, total: u64, width: usize) -> String {
    let eighths = width as u64 * EIGHTHS.len() as u64;
    let filled = eighths.saturating_mul(done.min(total)).checked_div(total).unwrap_or(eighths);
    let filled = usize::try_from(filled).unwrap_or(0);
    let (whole, part) = (filled / EIGHTHS.len(), filled % EIGHTHS.len());
    let bar = "█".repeat(whole) + EIGHTHS[part];
    format!("{bar:<width$}")
}

fn job_lines(jobs: &[&Running], width: usize) -> Vec<String> {
    let numbers: Vec<String> = jobs.iter().map(|job| format!("#{}", job.number)).collect();
    let cores: Vec<String> = jobs.iter().map(|job| cores(job)).collect();
    let widest = |texts: &[String]| texts.iter().map(String::len).max().unwrap_or(0);
    let (number_width, core_width) = (widest(&numbers), widest(&cores));
    let mut lines = Vec::new();
    for (job, (number, cores)) in jobs.iter().zip(numbers.iter().zip(&cores)) {
        let age = seconds(job.since.elapsed());
        let mut columns = vec![format!("  {age:>6}")];
        if width >= NARROW {
            columns.push(format!("{number:>number_width$}"));
            columns.extend((core_width > 0).then(|| format!("{cores:<core_width$}")));
        }
        columns.extend(job.wants_terminal.then(|| "stopped: wants the terminal".to_owned()));
        columns.push(job.latest.as_ref().unwrap_or(&job.name).clone());
        lines.push(columns.join("  "));
    }
    lines
}

fn cores(job: &Running) -> String {
    match job.cores.as_slice() {
        [] => String::new(),
        [core] => format!("core {core}"),
        cores => format!("cores {}", cores.iter().copied().collect::<CpuSet>()),
    }
}

#[cfg(test)]
mod tests;
