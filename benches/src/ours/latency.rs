//! One task outstanding, one worker: with everybody looking, and with everybody asleep.

use brigade::{Link, Pool};

use super::{Crew, noop};
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{busy_trips, parked_trips, record_trips};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let crew = Crew::warm(link, 1)?;
    record_trips(report, "round_trip", busy_trips(load, || trip(&crew)));
    let before = sleeps(&crew)?;
    let trips = parked_trips(load, || trip(&crew));
    // The pause is forty times what a worker spins; that it slept each time is seen, not believed.
    let slept = sleeps(&crew)? - before;
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

/// How often the worker has gone to sleep by itself: its main thread runs the tasks and waits for
/// them.
fn sleeps(pool: &Pool) -> Outcome<u64> {
    let pids = pool.worker_pids();
    let pid = pids.first().ok_or("the pool has no worker")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    Ok(line.ok_or("the kernel counts no context switches")?.trim().parse()?)
}
