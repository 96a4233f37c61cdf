//! Waiting for a condition, with a bound.

use std::fmt::Debug;
use std::thread;
use std::time::{Duration, Instant};

use brigade::{Handle, TaskError};
use serde::de::DeserializeOwned;

/// What takes longer than this hangs. Generous, because a test machine may be busy with other tests.
pub const BOUND: Duration = Duration::from_secs(20);

/// Between two looks at a condition that nobody announces.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Returns as soon as `condition` holds; panics with `what` when it does not within `bound`.
///
/// The condition is a level, not an edge: it is looked at until it holds, so that no signal can be missed.
#[track_caller]
pub fn wait_until(what: &str, bound: Duration, mut condition: impl FnMut() -> bool) {
    wait_for(what, bound, || condition().then_some(()));
}

/// As [`wait_until`], for a condition that comes with a value.
///
/// # Panics
/// With `what` when nothing comes within `bound`.
#[track_caller]
pub fn wait_for<T>(what: &str, bound: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        // The time is read before the look, so that a slow look counts in favour of the condition.
        let waited = begin.elapsed();
        if let Some(found) = look() {
            return found;
        }
        assert!(waited < bound, "waited {bound:?} in vain for: {what}");
        pause(LOOK_AGAIN);
    }
}

/// The outcome of a task that must end by itself.
///
/// # Panics
/// When it does not within [`BOUND`].
#[track_caller]
pub fn outcome<R: DeserializeOwned + Debug + 'static>(
    mut handle: Handle<R>,
) -> Result<R, TaskError> {
    match handle.wait_timeout(BOUND) {
        Some(outcome) => outcome,
        None => panic!("waited {BOUND:?} in vain for the outcome of {handle:?}"),
    }
}

/// Lets time pass, where time itself is meant: a fault at a random moment, a task that takes long.
pub fn pause(time: Duration) {
    thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn a_wait_in_vain_says_what_it_waited_for() {
        let vain = || wait_until("the moon to fall", Duration::from_millis(5), || false);
        let message = *catch_unwind(vain).unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("the moon to fall"), "{message}");
    }

    #[test]
    fn a_condition_is_looked_at_even_without_time() {
        assert_eq!(wait_for("something that is there", Duration::ZERO, || Some(1)), 1);
    }
}
