//! Pins each side of a ping-pong to a core.
//!
//! Otherwise the kernel places both sides sometimes on one core and sometimes on two, and the
//! figures of these cases differ by a factor of eight (asleep) or of ten thousand (spinning). Only
//! ping-pongs are pinned: pools are measured as they are used.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::report::Outcome;

/// Returns two cores that this process may use.
pub(super) fn two() -> Outcome<[usize; 2]> {
    let allowed = sched_getaffinity(None)?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    match (cores.next(), cores.next()) {
        (Some(one), Some(two)) => Ok([one, two]),
        _ => Err("a ping-pong needs two cores".into()),
    }
}

/// Pins the calling thread, and the processes it starts, to one core.
pub(super) fn pin(core: usize) -> Outcome<()> {
    let mut only = CpuSet::new();
    only.set(core);
    Ok(sched_setaffinity(None, &only)?)
}
