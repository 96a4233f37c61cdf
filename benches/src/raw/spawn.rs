//! Measures starting this executable and waiting for it to exit, which it does at once.
//!
//! It uses `std::process::Command` without special settings: on Linux, `posix_spawn` and `waitid`.

use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{Sample, timed};

use super::in_role;

/// Measures the limit for starting a pool: one process per worker, all started, then all awaited.
pub(super) fn measure_start(load: &Load, report: &mut Report) -> Outcome<()> {
    for count in [1, 2, 16, 64, 256] {
        let repetitions = (load.starts * 2).min(2 + 128 / count);
        report.record(format!("spawn_{count}_seconds"), spawn(count, repetitions)?);
    }
    Ok(())
}

/// Measures the limit for replacing a killed worker: one process.
pub(super) fn measure_one(load: &Load, report: &mut Report) -> Outcome<()> {
    report.record("spawn_p50_seconds", spawn(1, load.crashes * 2)?);
    Ok(())
}

pub(super) fn spawn(count: usize, repetitions: usize) -> Outcome<f64> {
    let mut sample = Sample::default();
    for _ in 0..repetitions {
        let (time, ()) = timed(|| {
            let mut children = Vec::with_capacity(count);
            for _ in 0..count {
                children.push(in_role("exit").spawn()?);
            }
            for mut child in children {
                child.wait()?;
            }
            Ok(())
        })?;
        sample.add(time);
    }
    sample.median()
}
