//! Measures the memory of arguments from a producer that is faster than the pool, when the queue is
//! at its limit.

use std::time::Duration;

use brigade::{Link, Pool};
use brigade_testkit::pause;

use super::resident_kibibytes;
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::number;

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = Pool::builder()
        .link(link)
        .workers(load.workers)
        .queue_limit(load.pressure_limit)
        .build()?;
    pool.warm_up()?;
    let before = resident_kibibytes()?;
    let mut most = before;
    let mut handles = Vec::new();
    for _ in 0..4 * load.pressure_limit {
        handles.push(pool.submit(slow_length, vec![1; ARGUMENT])?);
        most = most.max(resident_kibibytes()?);
    }
    for handle in handles {
        handle.wait()?;
    }
    let limit = load.pressure_limit * ARGUMENT / 1024;
    report.record("memory_over_limit_percent", 100.0 * number(most - before) / number(limit));
    Ok(())
}

const ARGUMENT: usize = 1 << 20;

fn slow_length(argument: Vec<u8>) -> usize {
    pause(Duration::from_millis(2));
    argument.len()
}
