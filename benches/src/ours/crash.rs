//! A worker is killed while it runs a task: until the caller knows, and until another task has run.

use std::time::{Duration, Instant};

use brigade::{Link, TaskState};
use brigade_testkit::faults::hangs;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::Crew;
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::Sample;

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let crew = Crew::warm(link, 1)?;
    let (mut learned, mut recovered) = (Sample::default(), Sample::default());
    for _ in 0..load.crashes {
        let times = kill(&crew)?;
        learned.add(times.0);
        recovered.add(times.1);
    }
    report.record("learned_p50_seconds", learned.median()?);
    report.record("recovered_p50_seconds", recovered.median()?);
    Ok(())
}

/// What takes longer never comes.
const BOUND: Duration = Duration::from_secs(10);

/// Both times are counted from just before the kill. The caller submits the next task when it has
/// learned that the first one is lost.
fn kill(crew: &Crew) -> Outcome<(Duration, Duration)> {
    let before = crew.submit(pid, ())?.wait()?;
    let target = i32::try_from(before).ok().and_then(Pid::from_raw).ok_or("no pid")?;
    let target = pidfd_open(target, PidfdFlags::empty())?;
    let mut victim = crew.submit(hangs, ())?;
    let waited = Instant::now();
    while victim.state() != TaskState::Running {
        if waited.elapsed() > BOUND {
            return Err("the task that is to be killed does not begin".into());
        }
        // Load is being set up; nothing is measured yet.
        brigade_testkit::pause(Duration::from_micros(200));
    }
    let begin = Instant::now();
    pidfd_send_signal(&target, Signal::KILL)?;
    let outcome = victim.wait_timeout(BOUND).ok_or("the caller did not learn of the death")?;
    let learned = begin.elapsed();
    let error = outcome.err().ok_or("a killed task has a result")?;
    if !error.is_worker_death() {
        return Err(format!("not the death of a worker: {error}").into());
    }
    let mut next = crew.submit(pid, ())?;
    let after = next.wait_timeout(BOUND).ok_or("no replacement came")??;
    let recovered = begin.elapsed();
    if after == before { Err("the dead worker answered".into()) } else { Ok((learned, recovered)) }
}

fn pid((): ()) -> u32 {
    std::process::id()
}
