//! Which core each side of a ping-pong runs on.
//!
//! Left to itself the scheduler puts both sides sometimes on one core and sometimes on two, and the
//! figure then has two values that differ by a factor of eight (asleep), or of ten thousand
//! (spinning). So the sides are pinned here, and only here: pools are measured as they are used.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::report::Outcome;

/// Two cores that this process may use.
pub(super) fn two() -> Outcome<[usize; 2]> {
    let allowed = sched_getaffinity(None)?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    match (cores.next(), cores.next()) {
        (Some(one), Some(two)) => Ok([one, two]),
        _ => Err("two processes need two cores to look at each other".into()),
    }
}

/// Keeps the calling thread, and what it starts, on one core.
pub(super) fn pin(core: usize) -> Outcome<()> {
    let mut only = CpuSet::new();
    only.set(core);
    Ok(sched_setaffinity(None, &only)?)
}
