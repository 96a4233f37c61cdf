//! Snapshots as text.

use std::fmt;
use std::time::Duration;

use crate::{Distribution, GlobalSnapshot, PoolSnapshot, PoolState, WorkerSnapshot};

/// Number of times from which the 95th percentile is printed.
const ENOUGH_FOR_P95: u64 = 20;

/// Number of slow tasks, and of failures, that are printed.
const LISTED: usize = 5;

/// Prints the report of all pools.
impl fmt::Display for GlobalSnapshot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        summary(out, self.pools, &self.total)?;
        details(out, &self.total)
    }
}

/// Prints the report of the pool.
impl fmt::Display for PoolSnapshot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        summary(out, 1, self)?;
        details(out, self)?;
        if !matches!(self.state, PoolState::Open) {
            write!(out, "\nState      {}", self.state)?;
        }
        for (task, word) in self.slowest.iter().take(LISTED).zip(once("Slowest")) {
            write!(out, "\n{word:<10} {:>10} task {}", short(task.run_time), task.task)?;
            label(out, &task.label)?;
            write!(out, " on worker {}", task.worker)?;
        }
        for (failure, word) in self.recent_failures.iter().take(LISTED).zip(once("Failed")) {
            write!(out, "\n{word:<10} {:>10} ago: ", short(failure.ago))?;
            write!(out, "{}", failure.text.escape_debug())?;
        }
        if !self.workers.is_empty() {
            out.write_str(
                "\nWorker    tasks  failed  restarts  start   init   wait    run   exit",
            )?;
        }
        for worker in &self.workers {
            out.write_str("\n")?;
            row(out, worker)?;
        }
        Ok(())
    }
}

impl fmt::Display for PoolState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => out.write_str("open"),
            Self::ShuttingDown => out.write_str("shutting down"),
            Self::Ended => out.write_str("ended"),
            Self::Broken { reason } => write!(out, "broken: {}", reason.escape_debug()),
        }
    }
}

fn summary(out: &mut fmt::Formatter<'_>, pools: u64, sum: &PoolSnapshot) -> fmt::Result {
    writeln!(out, "Pools {pools}")?;
    let dequeued = sum.enqueued.saturating_sub(sum.queued);
    writeln!(out, "Items {} enqueued / {dequeued} dequeued", sum.enqueued)?;
    writeln!(out, "Max Queue Depth {}", sum.max_queue_depth)?;
    writeln!(out, "Longest queue time {}", short(sum.queue_time.max))?;
    write!(out, "P50 {}", short(sum.queue_time.p50))?;
    if sum.queue_time.count >= ENOUGH_FOR_P95 {
        write!(out, "\nP95 {}", short(sum.queue_time.p95))?;
    }
    Ok(())
}

fn details(out: &mut fmt::Formatter<'_>, sum: &PoolSnapshot) -> fmt::Result {
    let PoolSnapshot { succeeded, cancelled, queued, running, .. } = sum;
    write!(out, "\nTasks      {succeeded} succeeded")?;
    for (kind, count) in &sum.failures {
        write!(out, ", {count} {}", kind.name().replace('_', " "))?;
    }
    write!(out, ", {cancelled} cancelled, {queued} queued, {running} running")?;
    write!(out, "\nBytes      {} in, {} out", sum.bytes_in, sum.bytes_out)?;
    let PoolSnapshot { restarts, deaths, executed, forked, .. } = sum;
    write!(out, "\nProcesses  {executed} executed, {forked} forked, ")?;
    write!(out, "{restarts} restarts, {deaths} deaths")?;
    write!(out, "\nTimes     ")?;
    for column in ["count", "min", "mean", "P50", "P90", "P95", "P99", "max"] {
        write!(out, " {column:>10}")?;
    }
    times(out, "Queue", &sum.queue_time)?;
    times(out, "Start", &sum.start_time)?;
    times(out, "Run", &sum.run_time)?;
    times(out, "Delivery", &sum.delivery_time)
}

fn times(out: &mut fmt::Formatter<'_>, name: &str, times: &Distribution) -> fmt::Result {
    write!(out, "\n{name:<10} {:>10}", times.count)?;
    let Distribution { min, mean, p50, p90, p95, p99, max, .. } = *times;
    for time in [min, mean, p50, p90, p95, p99, max] {
        write!(out, " {:>10}", short(time))?;
    }
    Ok(())
}

fn row(out: &mut fmt::Formatter<'_>, worker: &WorkerSnapshot) -> fmt::Result {
    let WorkerSnapshot { slot, generation, tasks, failures, restarts, shares, .. } = worker;
    let name = format!("{slot}.{generation}");
    write!(out, "{name:<8} {tasks:>6} {failures:>7} {restarts:>9}")?;
    let crate::Shares { start, initialize, wait, run, exit } = *shares;
    for share in [start, initialize, wait, run, exit] {
        write!(out, " {:>5.1}%", share * 100.0)?;
    }
    Ok(())
}

fn label(out: &mut fmt::Formatter<'_>, label: &str) -> fmt::Result {
    if label.is_empty() { Ok(()) } else { write!(out, " ({})", label.escape_debug()) }
}

/// Returns a time in its unit, without the digits that say nothing.
fn short(time: Duration) -> String {
    format!("{time:.2?}")
}

/// Returns the word, and then empty words for the lines below it.
fn once(word: &str) -> impl Iterator<Item = &str> {
    std::iter::once(word).chain(std::iter::repeat(""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::example;
    use crate::{Measurement, PoolTimes};

    /// Returns a pool in which this many tasks waited 1 µs, 2 µs and so on.
    fn pool(tasks: u32) -> PoolSnapshot {
        let mut times = PoolTimes::default();
        for task in 1..=tasks {
            times.queue.record(u64::from(task) * 1_000, 1);
        }
        let count = u64::from(tasks);
        let snapshot = PoolSnapshot {
            enqueued: count + 2,
            finished: count,
            succeeded: count,
            cancelled: 2,
            max_queue_depth: 7,
            ..PoolSnapshot::default()
        };
        Measurement { snapshot, times }.summarize()
    }

    #[test]
    fn the_report_begins_with_the_lines_of_the_model() {
        let report = pool(20).to_string();
        let lines: Vec<_> = report.lines().take(7).collect();
        let expected = [
            "Pools 1",
            "Items 22 enqueued / 22 dequeued",
            "Max Queue Depth 7",
            "Longest queue time 20.00µs",
            "P50 10.98µs",
            "P95 20.00µs",
            "Tasks      20 succeeded, 2 cancelled, 0 queued, 0 running",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn the_95th_percentile_needs_20_times() {
        assert!(!pool(19).to_string().contains("\nP95 "));
        let total = pool(20);
        let report = GlobalSnapshot { pools: 3, total, live: Vec::new() }.to_string();
        assert!(report.starts_with("Pools 3\n") && report.contains("\nP95 "), "{report}");
    }

    #[test]
    fn the_rest_is_aligned_and_harmless() {
        let report = example(2).to_string();
        let begin = report.find("Times").expect("a table of times");
        let table: Vec<_> = report[begin..].lines().take(5).collect();
        let width = |line: &str| line.chars().count();
        assert!(table.iter().all(|line| width(line) == width(table[0])), "{report}");
        assert!(!report.contains('\x1b'));
    }
}
