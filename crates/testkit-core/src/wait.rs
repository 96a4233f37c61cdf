//! Waits for a condition, with a bound.

use std::thread;
use std::time::{Duration, Instant};

/// Factor by which tests wait longer on a slow machine, such as an emulated one; some have as many
/// times fewer tasks. The variable `BRIGADE_TEST_PATIENCE` sets it for a build; otherwise it is 1.
pub const PATIENCE: u64 = match option_env!("BRIGADE_TEST_PATIENCE") {
    Some(factor) => match u64::from_str_radix(factor, 10) {
        Ok(factor) => factor,
        Err(_) => panic!("BRIGADE_TEST_PATIENCE must be a number"),
    },
    None => 1,
};

/// Anything that takes longer counts as a hang. Generous: what takes four seconds takes ten times
/// as long on two cores beside six busy processes and other tests.
pub const BOUND: Duration = Duration::from_secs(40 * PATIENCE);

/// Time between two looks at a condition that nobody announces.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Blocks until `condition` holds. Panics with `what` if that takes longer than `bound`.
///
/// The condition is a level, not an edge: it is checked until it holds, so no signal can be missed.
#[track_caller]
pub fn wait_until(what: &str, bound: Duration, mut condition: impl FnMut() -> bool) {
    wait(what, bound, &mut condition);
}

/// Like [`wait_until`], for a condition that comes with a value.
///
/// # Panics
/// Panics with `what` if there is no value within `bound`.
#[track_caller]
pub fn wait_for<T>(what: &str, bound: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    wait(what, bound, &mut || {
        found = look();
        found.is_some()
    });
    found.expect("the wait has ended")
}

/// The wait itself, which is compiled once for all conditions.
#[track_caller]
fn wait(what: &str, bound: Duration, condition: &mut dyn FnMut() -> bool) {
    assert!(look_until(bound, condition), "timed out after {bound:?} waiting for {what}");
}

/// Like [`wait_for`], and says more than the name of the condition if it does not come true.
///
/// # Panics
/// Panics with `what` and an explanation if there is no value within `bound`.
#[track_caller]
pub fn wait_or_explain<T>(
    what: &str,
    bound: Duration,
    mut look: impl FnMut() -> Option<T>,
    explain: impl FnOnce() -> String,
) -> T {
    let mut found = None;
    look_until(bound, &mut || {
        found = look();
        found.is_some()
    });
    match found {
        Some(found) => found,
        None => panic!("timed out after {bound:?} waiting for {what}: {}", explain()),
    }
}

/// Returns `true` if the condition holds in time.
fn look_until(bound: Duration, condition: &mut dyn FnMut() -> bool) -> bool {
    let begin = Instant::now();
    loop {
        // The time is read before the look, so that a slow look counts in favor of the condition.
        let waited = begin.elapsed();
        if condition() {
            return true;
        }
        if waited >= bound {
            return false;
        }
        pause(LOOK_AGAIN);
    }
}

/// Sleeps for `time`, where the time itself matters: a fault at a random moment, a task that takes
/// long.
pub fn pause(time: Duration) {
    thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn a_wait_that_times_out_names_its_condition() {
        let wait = || wait_until("the moon to fall", Duration::from_millis(5), || false);
        let message = *catch_unwind(wait).unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("the moon to fall"), "{message}");
    }

    #[test]
    fn a_condition_is_checked_even_with_a_zero_bound() {
        assert_eq!(wait_for("something that is there", Duration::ZERO, || Some(1)), 1);
    }
}
