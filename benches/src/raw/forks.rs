//! Measures the least that a new process takes: a small process copies itself by `fork`, and waits
//! for the copy, which ends at once. Two such processes run side by side.

use std::process::Stdio;

use brigade_sys::fork::copy_and_wait;

use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{Sample, number, timed};

use super::{in_role, spawn};

pub(super) fn measure(load: &Load, report: &mut Report) -> Outcome<()> {
    let count = load.fresh_tasks.to_string();
    let mut children = Vec::new();
    for _ in 0..load.workers {
        children.push(in_role("forks").arg(&count).stdout(Stdio::piped()).spawn()?);
    }
    let mut rate = 0.0;
    for child in children {
        let output = String::from_utf8(child.wait_with_output()?.stdout)?;
        rate += number(load.fresh_tasks) / output.trim().parse::<f64>()?;
    }
    report.record("tasks_per_second", rate);
    report.record("spawn_p50_seconds", spawn::spawn(1, load.crashes)?);
    Ok(())
}

/// Prints the seconds that `count` copies take.
#[expect(clippy::print_stdout, reason = "the process that has started this one reads it")]
pub(crate) fn run(count: usize) -> Outcome<()> {
    let mut sample = Sample::default();
    sample.add(timed(|| (0..count).try_for_each(|_| Ok(copy_and_wait()?)))?.0);
    println!("{}", sample.median()?);
    Ok(())
}
