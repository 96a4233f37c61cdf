//! Measures round trips with one worker and one outstanding task, while both sides spin and while
//! both sides sleep.

use brigade::{Link, Pool};

use super::{BenchPool, noop};
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{busy_trips, parked_trips, record_trips};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = BenchPool::warm(link, 1)?;
    record_trips(report, "round_trip", busy_trips(load, || trip(&pool)));
    let before = sleeps(&pool)?;
    let trips = parked_trips(load, || trip(&pool));
    // The pause is forty times as long as a worker spins. Check that it really slept each time.
    let slept = sleeps(&pool)? - before;
    if slept < u64::try_from(load.parked_trips)? * 9 / 10 {
        let reason = format!("the worker slept only {slept} times in {} calls", load.parked_trips);
        report.miss("parked_p50_seconds", reason);
    } else {
        record_trips(report, "parked", trips);
    }
    Ok(())
}

fn trip(pool: &Pool) -> Outcome<()> {
    Ok(pool.submit(noop, ())?.wait()?)
}

/// Returns the number of times the worker's main thread, which runs the tasks, went to sleep.
fn sleeps(pool: &Pool) -> Outcome<u64> {
    let pids = pool.worker_pids();
    let pid = pids.first().ok_or("the pool has no worker")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    Ok(line.ok_or("the kernel counts no context switches")?.trim().parse()?)
}
