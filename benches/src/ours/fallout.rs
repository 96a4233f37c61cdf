//! Crashes one of a thousand queued tasks in a pool with one worker, and measures how many others
//! succeed and how long no task runs.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use brigade::Link;
use brigade_sys::clock::now;

use super::{BenchPool, noop};
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{Sample, number};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let pool = BenchPool::warm(link, 1)?;
    let (mut pauses, mut fewest) = (Sample::default(), TASKS);
    for _ in 0..load.fallouts {
        let (pause, survivors) = one_crash(&pool, folder.path().join("crash"))?;
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

/// Returns the time from just before the crash until the next task begins in the replacement, and
/// the number of tasks that succeed.
fn one_crash(pool: &BenchPool, path: PathBuf) -> Outcome<(Duration, usize)> {
    let before = (0..TASKS / 2).map(|_| pool.submit(noop, ())).collect::<Result<Vec<_>, _>>()?;
    let crash = pool.submit(crashes, path.clone())?;
    let next = pool.submit(begins, ())?;
    let after =
        (TASKS / 2 + 2..TASKS).map(|_| pool.submit(noop, ())).collect::<Result<Vec<_>, _>>()?;
    let mut survivors = 0;
    for handle in before.into_iter().chain(after) {
        survivors += usize::from(handle.wait().is_ok());
    }
    let begun = next.wait()?;
    survivors += 1;
    if !crash.wait().is_err_and(|error| error.is_worker_death()) {
        return Err("the crash did not happen".into());
    }
    let crashed: u64 = fs::read_to_string(path)?.parse()?;
    Ok((Duration::from_nanos(begun.saturating_sub(crashed)), survivors))
}

/// Writes the time to `path` and aborts.
fn crashes(path: PathBuf) {
    // If this fails, the host cannot read the time and reports the error.
    let _ = fs::write(path, now().as_nanos().to_string());
    std::process::abort();
}

fn begins((): ()) -> u64 {
    now().as_nanos()
}
