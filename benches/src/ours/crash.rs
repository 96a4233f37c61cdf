//! Kills a worker that runs a task, and measures the time until the caller learns of it and until
//! another task has run. Lets workers with much memory crash, and measures when the caller learns.

use std::time::{Duration, Instant};

use brigade::{Link, TaskState};
use brigade_testkit::faults::{aborts, hangs};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::BenchPool;
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::Sample;

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = BenchPool::warm(link, 1)?;
    let (mut learned, mut recovered) = (Sample::default(), Sample::default());
    for _ in 0..load.crashes {
        let times = kill(&pool)?;
        learned.add(times.0);
        recovered.add(times.1);
    }
    report.record("learned_p50_seconds", learned.median()?);
    report.record("recovered_p50_seconds", recovered.median()?);
    for mebibytes in HEAPS {
        let mut learned = Sample::default();
        for _ in 0..load.crashes {
            learned.add(crash(&pool, mebibytes)?);
        }
        report.record(format!("crashed_with_{mebibytes}_mib_p50_seconds"), learned.median()?);
    }
    Ok(())
}

/// Memory of the worker when it crashes, in mebibytes. The kernel frees it before it reports the
/// death.
const HEAPS: [usize; 3] = [0, 64, 500];

/// Returns the time from the submission of a task that crashes until the caller learns of it.
fn crash(pool: &BenchPool, mebibytes: usize) -> Outcome<Duration> {
    pool.submit(fills, mebibytes << 20)?.wait()?;
    let begin = Instant::now();
    let mut victim = pool.submit(aborts, ())?;
    let outcome = victim.wait_timeout(BOUND).ok_or("the caller did not learn of the crash")?;
    let learned = begin.elapsed();
    match outcome {
        Err(error) if error.crash().is_some() => Ok(learned),
        Err(error) => Err(format!("not a crash: {error}").into()),
        Ok(()) => Err("a task that aborts returned a value".into()),
    }
}

/// Keeps this much memory until the process ends.
fn fills(bytes: usize) {
    std::mem::forget(std::hint::black_box(vec![1_u8; bytes]));
}

/// Time after which an event counts as missing.
const BOUND: Duration = Duration::from_secs(10);

/// Returns both times, counted from just before the kill. The caller submits the next task after it
/// has learned that the first one is lost.
fn kill(pool: &BenchPool) -> Outcome<(Duration, Duration)> {
    let before = pool.submit(pid, ())?.wait()?;
    let target = i32::try_from(before).ok().and_then(Pid::from_raw).ok_or("no pid")?;
    let target = pidfd_open(target, PidfdFlags::empty())?;
    let mut victim = pool.submit(hangs, ())?;
    let waited = Instant::now();
    while victim.state() != TaskState::Running {
        if waited.elapsed() > BOUND {
            return Err("the task to be killed did not begin".into());
        }
        // This is setup; nothing is measured yet.
        brigade_testkit::pause(Duration::from_micros(200));
    }
    let begin = Instant::now();
    pidfd_send_signal(&target, Signal::KILL)?;
    let outcome = victim.wait_timeout(BOUND).ok_or("the caller did not learn of the death")?;
    let learned = begin.elapsed();
    let error = outcome.err().ok_or("a killed task returned a value")?;
    if !error.is_worker_death() {
        return Err(format!("not a worker's death: {error}").into());
    }
    let mut next = pool.submit(pid, ())?;
    let after = next.wait_timeout(BOUND).ok_or("no replacement was started")??;
    let recovered = begin.elapsed();
    if after == before {
        Err("the dead worker ran a task".into())
    } else {
        Ok((learned, recovered))
    }
}

fn pid((): ()) -> u32 {
    std::process::id()
}
