//! Measures the throughput of no-ops: submitted one by one, mapped, and with more workers than
//! cores.

use brigade::{Link, TaskError};

use super::{BenchPool, noop};
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::throughput;

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) {
    report.attempt("each_per_second", || each(link, load.workers, load));
    report.attempt("each_8_workers_per_second", || each(link, 8, load));
    report.attempt("map_per_second", || {
        let pool = BenchPool::warm(link, load.workers)?;
        throughput(load, MAX_MAPPED, |tasks| consume(pool.map(nothing, numbers(tasks)), tasks))
    });
    report.attempt("map_unordered_per_second", || {
        let pool = BenchPool::warm(link, load.workers)?;
        throughput(load, MAX_MAPPED, |tasks| {
            consume(pool.map_unordered(nothing, numbers(tasks)), tasks)
        })
    });
}

/// Maximum number of mapped tasks. A map keeps few of them outstanding, so memory is no limit.
const MAX_MAPPED: usize = 20_000_000;

/// A no-op with its item as the argument, for maps.
fn nothing(_: u64) {}

pub(super) fn each(link: Link, workers: usize, load: &Load) -> Outcome<f64> {
    let pool = BenchPool::warm(link, workers)?;
    throughput(load, load.most_submitted, |tasks| {
        let handles = (0..tasks).map(|_| pool.submit(noop, ())).collect::<Result<Vec<_>, _>>()?;
        for handle in handles {
            handle.wait()?;
        }
        Ok(())
    })
}

fn numbers(tasks: usize) -> impl Iterator<Item = u64> {
    (0..).take(tasks)
}

fn consume(results: impl Iterator<Item = Result<(), TaskError>>, tasks: usize) -> Outcome<()> {
    let mut count = 0;
    for result in results {
        result?;
        count += 1;
    }
    if count == tasks { Ok(()) } else { Err(format!("only {count} of {tasks} results").into()) }
}
