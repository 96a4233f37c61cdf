//! Takes snapshots of a pool while everything happens to it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brigade::Pool;
use brigade_testkit::{Random, pause};

use crate::consistent::check;

/// Takes snapshots until `done`, a few hundred a second, and one more. Returns their number.
///
/// # Errors
/// Returns what is wrong with the first one whose numbers do not fit together.
pub(super) fn run(pool: &Pool, mut random: Random, done: &AtomicBool) -> Result<u64, String> {
    let mut taken = 0;
    let mut goes_on = true;
    while goes_on {
        goes_on = !done.load(Ordering::Acquire);
        let snapshot = pool.snapshot();
        check(&snapshot).map_err(|problem| format!("{problem} in a snapshot:\n{snapshot}"))?;
        taken += 1;
        pause(random.below(Duration::from_millis(5)));
    }
    Ok(taken)
}
