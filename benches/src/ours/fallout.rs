//! One of a thousand queued tasks ends its worker, which is the only one: how many of the others succeed, and how long
//! nothing runs.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use brigade::Link;
use brigade_sys::clock::now;

use super::{Crew, noop};
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{Sample, number};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let crew = Crew::warm(link, 1)?;
    let (mut pauses, mut fewest) = (Sample::default(), TASKS);
    for _ in 0..load.fallouts {
        let (pause, survivors) = one_crash(&crew, folder.path().join("crash"))?;
        pauses.add(pause);
        fewest = fewest.min(survivors);
    }
    report.record("survivors_of_1000_count", number(fewest));
    for percent in [50, 99] {
        let pause = pauses.percentile(percent).ok_or("nothing was measured")?;
        report.record(format!("resumed_p{percent}_seconds"), pause);
    }
    Ok(())
}

const TASKS: usize = 1_000;

/// From just before the crash until the task behind it begins in the replacement, and how many of all tasks succeed.
fn one_crash(crew: &Crew, place: PathBuf) -> Outcome<(Duration, usize)> {
    let before = (0..TASKS / 2).map(|_| crew.submit(noop, ())).collect::<Result<Vec<_>, _>>()?;
    let crash = crew.submit(crashes, place.clone())?;
    let next = crew.submit(begins, ())?;
    let after =
        (TASKS / 2 + 2..TASKS).map(|_| crew.submit(noop, ())).collect::<Result<Vec<_>, _>>()?;
    let mut survivors = 0;
    for handle in before.into_iter().chain(after) {
        survivors += usize::from(handle.wait().is_ok());
    }
    let begun = next.wait()?;
    survivors += 1;
    if !crash.wait().is_err_and(|error| error.is_worker_death()) {
        return Err("the crash did not happen".into());
    }
    let crashed: u64 = fs::read_to_string(place)?.parse()?;
    Ok((Duration::from_nanos(begun.saturating_sub(crashed)), survivors))
}

/// Tells the time and aborts.
fn crashes(place: PathBuf) {
    // Nobody is there to hear of a failure; the host finds no time then.
    let _ = fs::write(place, now().as_nanos().to_string());
    std::process::abort();
}

fn begins((): ()) -> u64 {
    now().as_nanos()
}
