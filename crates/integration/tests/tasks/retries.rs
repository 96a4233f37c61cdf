//! Tasks that run again after a panic, after an `Err`, and after a pause.

use std::time::{Duration, Instant};

use brigade::{Pool, Retry, Shutdown, TaskErrorKind};
use brigade_integration::{attempt, pool};
use brigade_testkit::faults::aborts;
use brigade_testkit::{BOUND, Watchdog, outcome};

const PAUSE: Duration = Duration::from_millis(30);

/// Returns an error, or panics, before this attempt.
fn errs_before(first: u32) -> Result<u32, String> {
    if attempt() < first { Err(format!("attempt {}", attempt())) } else { Ok(attempt()) }
}

fn panics_before(first: u32) -> u32 {
    assert!(attempt() >= first, "too early");
    attempt()
}

fn dies_before(first: u32) -> u32 {
    if attempt() < first { std::process::abort() } else { attempt() }
}

/// Returns the pools of the tests, and a retry without a pause and one with pauses.
fn pools_and_settings() -> (Pool, [Retry; 2]) {
    let retry = Retry::new().attempts(3);
    (pool(2), [retry, retry.delay(PAUSE).jitter(0.5).factor(1.5)])
}

#[test]
fn an_error_is_retried_as_often_as_was_asked_for() {
    let (pool, settings) = pools_and_settings();
    for retry in settings {
        let task = pool.task(errs_before).retry(retry).retry_errors();
        assert_eq!(outcome(task.submit(3).unwrap()).unwrap(), Ok(3));
        let last = outcome(task.submit(4).unwrap()).unwrap();
        assert_eq!(last.unwrap_err(), "attempt 3", "the last error is the value");
    }
    assert_eq!(pool.worker_restarts(), 0);
}

#[test]
fn a_panic_is_retried_as_often_as_was_asked_for() {
    let (pool, settings) = pools_and_settings();
    for retry in settings {
        let task = pool.task(panics_before).retry(retry).retry_panics();
        assert_eq!(outcome(task.submit(3).unwrap()).unwrap(), 3);
        let error = outcome(task.submit(4).unwrap()).unwrap_err();
        assert!(error.is_panic() && error.attempt() == 3, "{error}");
    }
}

#[test]
fn failures_are_retried_only_if_that_was_asked_for() {
    let (pool, [retry, _]) = pools_and_settings();
    let value = outcome(pool.task(errs_before).retry(retry).retry_panics().submit(2).unwrap());
    assert_eq!(value.unwrap().unwrap_err(), "attempt 1");
    let error = outcome(pool.task(panics_before).retry(retry).submit(2).unwrap()).unwrap_err();
    assert!(error.is_panic() && error.attempt() == 1, "{error}");
    let none = pool.task(errs_before).retry_errors().submit(2).unwrap();
    assert_eq!(outcome(none).unwrap().unwrap_err(), "attempt 1", "without retries there are none");
}

#[test]
fn large_errors_are_retried_too() {
    fn errs_at_length(first: u32) -> Result<u32, Vec<u8>> {
        if attempt() < first { Err(vec![7; 100 << 10]) } else { Ok(attempt()) }
    }
    let pool = pool(1);
    let task = pool.task(errs_at_length).retries(2).retry_errors();
    assert_eq!(outcome(task.submit(2).unwrap()).unwrap(), Ok(2));
    assert_eq!(outcome(task.submit(9).unwrap()).unwrap().unwrap_err().len(), 100 << 10);
}

#[test]
fn the_next_attempt_waits_for_the_pause_and_others_run() {
    let _watchdog = Watchdog::new("a task in its pause", BOUND);
    let pool = pool(1);
    let retry = Retry::new().attempts(2).delay(PAUSE);
    for task in
        [pool.task(dies_before).retry(retry), pool.task(panics_before).retry(retry).retry_panics()]
    {
        let begin = Instant::now();
        let retried = task.submit(2).unwrap();
        let other = pool.submit(brigade_integration::square, 7).unwrap();
        assert_eq!(outcome(other).unwrap(), 49);
        assert_eq!(outcome(retried).unwrap(), 2);
        assert!(begin.elapsed() >= PAUSE, "{:?}", begin.elapsed());
    }
}

#[test]
fn a_paused_task_can_be_cancelled_killed_and_shut_down() {
    let _watchdog = Watchdog::new("a task in a long pause", BOUND);
    let hour = Retry::new().attempts(2).delay(Duration::from_secs(3600));
    let pause = |pool: &Pool| {
        let handle = pool.task(panics_before).retry(hour).retry_panics().submit(2).unwrap();
        // A worker that has run another task has failed at the first.
        outcome(pool.submit(brigade_integration::square, 1).unwrap()).unwrap();
        handle
    };
    let pool = pool(1);
    for end in [|it: &brigade::Handle<u32>| it.cancel(), |it: &brigade::Handle<u32>| it.kill()] {
        let handle = pause(&pool);
        end(&handle);
        assert_eq!(outcome(handle).unwrap_err().kind(), &TaskErrorKind::Cancelled);
    }
    let handle = pause(&pool);
    pool.shutdown_with(Shutdown::CancelPending, BOUND).unwrap();
    assert_eq!(outcome(handle).unwrap_err().kind(), &TaskErrorKind::Cancelled);
}

#[test]
fn a_drain_waits_for_the_last_attempt() {
    let pool = pool(1);
    let retry = Retry::new().attempts(3).delay(PAUSE).factor(1.0);
    let handle = pool.task(errs_before).retry(retry).retry_errors().submit(3).unwrap();
    let death = pool.task(aborts).retry(retry.attempts(2)).submit(()).unwrap();
    pool.shutdown().unwrap();
    assert_eq!(outcome(handle).unwrap(), Ok(3));
    let error = outcome(death).unwrap_err();
    assert!(error.is_worker_death() && error.attempt() == 2, "{error}");
}
