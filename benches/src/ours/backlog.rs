//! Measures a queue that is never emptied: memory per task, and the submission rate as it grows.

use brigade::Link;
use brigade_testkit::faults::hangs;

use super::{BenchPool, resident_kibibytes};
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{number, timed};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = BenchPool::warm(link, 1)?;
    let _holds_the_worker = pool.submit(hangs, ())?;
    let before = resident_kibibytes()?;
    let mut numbers = Vec::with_capacity(load.backlog_tenth);
    for argument in 0..load.backlog_tenth as u64 {
        numbers.push(pool.submit(takes_a_number, argument)?);
    }
    // They stay queued, so that the memory of the others is fresh as well.
    let between = resident_kibibytes()?;
    let of_numbers = number(1024 * (between - before)) / number(numbers.len());
    report.record("bytes_a_no_op_count", of_numbers);
    // Keep the handles, as callers do that want the results.
    let mut handles = Vec::with_capacity(10 * load.backlog_tenth);
    let mut rates = Vec::new();
    for tenth in 1..=10 {
        let (time, ()) = timed(|| {
            for _ in 0..load.backlog_tenth {
                handles.push(pool.submit(takes_64_bytes, ARGUMENT)?);
            }
            Ok(())
        })?;
        let rate = number(load.backlog_tenth) / time.as_secs_f64();
        report.record(format!("submit_tenth_{tenth:02}_per_second"), rate);
        rates.push(rate);
    }
    let grown = 1024 * (resident_kibibytes()? - between);
    report.record("bytes_a_task_count", number(grown) / number(handles.len()));
    rates.sort_by(f64::total_cmp);
    report.record("slowest_tenth_percent", 100.0 * rates[0] / rates[rates.len() / 2]);
    Ok(())
}

/// Encoded as 64 bytes.
type Argument = ([u8; 32], [u8; 32]);

const ARGUMENT: Argument = ([7; 32], [9; 32]);

fn takes_a_number(_: u64) {}

fn takes_64_bytes(_: Argument) {}
