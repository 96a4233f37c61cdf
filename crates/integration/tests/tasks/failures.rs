//! Whatever a task does, it fails alone, and its error says how.

use std::io::Write;
use std::time::Duration;

use brigade::{Exit, Link, Pool, SubmitErrorKind, TaskError, TaskErrorKind};
use brigade_integration::{Helper, attempt, builder, pool, worker_died};
use brigade_testkit::faults::*;
use brigade_testkit::{Gate, PATIENCE, Watchdog, outcome, pass, processes};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Number of innocent tasks around each guilty one.
const INNOCENT: u64 = 1_000;

fn square(number: u64) -> u64 {
    number * number
}

/// Runs a task among innocent ones, all of which must succeed. Returns its outcome.
#[track_caller]
fn amid_innocent_tasks<A, R>(
    pool: &Pool,
    function: impl Fn(A) -> R + Copy + Send + 'static,
    argument: A,
) -> Result<R, TaskError>
where
    A: Serialize + DeserializeOwned + 'static,
    R: Serialize + DeserializeOwned + std::fmt::Debug + 'static,
{
    let submit = |number| pool.submit(square, number).unwrap();
    let before: Vec<_> = (0..INNOCENT / 2).map(submit).collect();
    let guilty = pool.submit(function, argument).unwrap();
    let after: Vec<_> = (INNOCENT / 2..INNOCENT).map(submit).collect();
    for (number, handle) in (0..).zip(before.into_iter().chain(after)) {
        assert_eq!(outcome(handle).unwrap(), number * number);
    }
    outcome(guilty)
}

#[track_caller]
fn panicked<R: std::fmt::Debug>(outcome: Result<R, TaskError>) -> (String, String) {
    match outcome.as_ref().map_err(TaskError::kind) {
        Err(TaskErrorKind::Panicked { message, location, .. }) => {
            (message.clone(), location.clone())
        }
        _ => panic!("the task should have panicked, but the outcome is {outcome:?}"),
    }
}

#[track_caller]
fn codec<R: std::fmt::Debug>(outcome: Result<R, TaskError>) -> String {
    match outcome.as_ref().map_err(TaskError::kind) {
        Err(TaskErrorKind::Codec { message }) => message.clone(),
        _ => panic!("the value should not have been decoded, but the outcome is {outcome:?}"),
    }
}

#[test]
fn an_abort_is_reported_as_its_signal() {
    let (_, exit) = worker_died(amid_innocent_tasks(&pool(2), aborts, ()));
    assert_eq!(exit, Exit::Signal(6));
}

#[test]
fn an_exit_is_reported_with_its_code() {
    let pool = pool(2);
    for code in [3, 0] {
        let (_, exit) = worker_died(amid_innocent_tasks(&pool, exits, code));
        assert_eq!(exit, Exit::Code(code));
    }
}

#[test]
fn a_stack_overflow_is_explained_in_the_error() {
    let error = amid_innocent_tasks(&pool(2), overflows_the_stack, ()).unwrap_err();
    assert!(error.to_string().contains("stack overflow"), "{error}");
    // By SIGABRT where the runtime's handler is installed; a worker that begins before `main` has
    // none yet.
    assert!(matches!(worker_died(Err::<(), _>(error)).1, Exit::Signal(6 | 11)));
}

#[test]
fn a_death_is_reported_with_the_last_words_on_stderr() {
    let dies_loudly = |words: String| {
        let _ = writeln!(
            std::io::stderr(),
            "{}
{words}
",
            "earlier words ".repeat(400)
        );
        std::process::abort()
    };
    let outcome: Result<(), TaskError> =
        amid_innocent_tasks(&pool(2), dies_loudly, "that is it".to_owned());
    let error = outcome.unwrap_err();
    let TaskErrorKind::WorkerDied { stderr_tail, .. } = error.kind() else { panic!("{error:?}") };
    assert!(
        stderr_tail.ends_with(
            "earlier words 
that is it

"
        ),
        "{stderr_tail:?}"
    );
    assert!(stderr_tail.len() <= 16 * 1024);
    assert!(error.to_string().ends_with("that is it"), "{error}");
}

#[test]
fn a_kill_from_outside_is_reported_as_its_signal() {
    let pool = pool(2);
    assert_eq!(worker_died(amid_innocent_tasks(&pool, kills_itself, ())).1, Exit::Signal(9));
    assert_eq!(worker_died(amid_innocent_tasks(&pool, terminates_itself, ())).1, Exit::Signal(15));
}

#[test]
fn a_worker_that_closes_all_descriptors_is_replaced() {
    let pool = builder(2).link(Link::Ipc).build().unwrap();
    worker_died(amid_innocent_tasks(&pool, closes_all_descriptors, ()));
}

#[test]
fn rings_deliver_a_value_without_any_descriptor() {
    let pool = builder(2).link(Link::Ring).build().unwrap();
    // The worker may notice that it cannot ring the host's doorbell, and exit; the outcome was
    // complete before that.
    amid_innocent_tasks(&pool, closes_all_descriptors, ()).unwrap();
}

#[test]
fn a_hanging_task_delays_no_other_and_dies_with_its_worker() {
    let pool = pool(2);
    let gate = Gate::new();
    let stuck = pool.submit(pass, gate.pass(0)).unwrap();
    gate.wait_for_arrivals(1);
    assert_eq!(amid_innocent_tasks(&pool, square, 5).unwrap(), 25);
    let pids = pool.worker_pids();
    for pid in pids {
        processes::hit_child(pid, processes::Signal::KILL);
    }
    assert_eq!(worker_died(outcome(stuck)).1, Exit::Signal(9));
    assert_eq!(amid_innocent_tasks(&pool, square, 6).unwrap(), 36);
}

#[test]
fn a_stopped_worker_delays_no_other_and_can_be_killed() {
    let pool = pool(2);
    pool.warm_up().unwrap();
    let pids = pool.worker_pids();
    let stopped = pool.submit(stops_itself, ()).unwrap();
    let find = || pids.iter().copied().find(|pid| processes::is_stopped(*pid));
    let pid = brigade_testkit::wait_for("a stopped worker", brigade_testkit::BOUND, find);
    assert_eq!(amid_innocent_tasks(&pool, square, 5).unwrap(), 25);
    assert!(processes::hit_child(pid, processes::Signal::KILL));
    assert_eq!(worker_died(outcome(stopped)), (pid, Exit::Signal(9)));
}

#[test]
fn a_stopped_and_continued_worker_finishes_its_task() {
    let pool = pool(1);
    pool.warm_up().unwrap();
    let pid = pool.worker_pids()[0];
    let stopped = pool.submit(stops_itself, ()).unwrap();
    brigade_testkit::wait_until("a stopped worker", brigade_testkit::BOUND, || {
        processes::is_stopped(pid)
    });
    assert!(processes::hit_child(pid, processes::Signal::CONT));
    outcome(stopped).unwrap();
    assert_eq!(pool.worker_pids(), [pid]);
}

#[test]
fn a_panic_has_message_and_location_and_keeps_the_worker() {
    let pool = pool(2);
    pool.warm_up().unwrap();
    let (message, location) = panicked(amid_innocent_tasks(&pool, panics_with_str, ()));
    assert_eq!(message, "a literal");
    assert!(location.contains("panics.rs:"), "{location}");
    let (message, _) = panicked(amid_innocent_tasks(&pool, panics_with_string, "this".to_owned()));
    assert_eq!(message, "made for the occasion: this");
    panicked(amid_innocent_tasks(&pool, panics_with_an_object, ()));
    assert_eq!(pool.worker_restarts(), 0);
}

#[test]
fn a_payload_that_panics_on_drop_is_reported_as_a_panic() {
    panicked(amid_innocent_tasks(&pool(2), panics_with_a_bomb, ()));
}

#[test]
fn a_panic_in_a_tasks_own_thread_does_not_fail_the_task() {
    let pool = pool(2);
    assert!(amid_innocent_tasks(&pool, panics_in_a_thread, ()).unwrap());
    assert_eq!(pool.worker_restarts(), 0);
}

#[test]
fn a_codec_error_has_the_text_of_the_type() {
    let pool = pool(1);
    let error = pool.submit(takes_what_spoils_encoding, SpoilsEncoding(How::Fails)).unwrap_err();
    assert!(error.to_string().ends_with("spoiled on purpose"), "{error}");
    let results = [
        outcome(pool.submit(returns_what_spoils_encoding, How::Fails).unwrap()).map(drop),
        outcome(pool.submit(returns_what_spoils_decoding, How::Fails).unwrap()).map(drop),
        outcome(pool.submit(takes_what_spoils_decoding, SpoilsDecoding(How::Fails)).unwrap())
            .map(drop),
    ];
    for result in results {
        let error = result.unwrap_err();
        let TaskErrorKind::Codec { message } = error.kind() else { panic!("{error:?}") };
        assert!(message.ends_with("spoiled on purpose"), "{message}");
    }
}

#[test]
fn an_unencodable_argument_is_returned() {
    let pool = pool(1);
    let error = pool.submit(takes_what_spoils_encoding, SpoilsEncoding(How::Fails)).unwrap_err();
    match error.kind() {
        SubmitErrorKind::Codec { message } => {
            assert!(message.contains("SpoilsEncoding"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(error.into_argument(), SpoilsEncoding(How::Fails));
    let fine = pool.submit(takes_what_spoils_encoding, SpoilsEncoding(How::NotAtAll)).unwrap();
    assert_eq!(outcome(fine).unwrap(), How::NotAtAll);
}

#[test]
fn a_panic_during_encoding_reaches_the_submitter() {
    let pool = pool(1);
    let submit = || drop(pool.submit(takes_what_spoils_encoding, SpoilsEncoding(How::Panics)));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(submit)).is_err());
    assert_eq!(amid_innocent_tasks(&pool, square, 5).unwrap(), 25);
}

#[test]
fn an_undecodable_argument_fails_only_its_task() {
    let pool = pool(2);
    let spoiled = |how| amid_innocent_tasks(&pool, takes_what_spoils_decoding, SpoilsDecoding(how));
    assert_eq!(spoiled(How::NotAtAll).unwrap(), How::NotAtAll);
    let message = codec(spoiled(How::Fails));
    assert!(message.contains("SpoilsDecoding"), "{message}");
    assert_eq!(panicked(spoiled(How::Panics)).0, "spoiled by a panic");
    assert_eq!(pool.worker_restarts(), 0);
    assert_eq!(worker_died(spoiled(How::Exits)).1, Exit::Code(4));
    assert_eq!(worker_died(spoiled(How::Aborts)).1, Exit::Signal(6));
}

#[test]
fn an_unencodable_value_fails_only_its_task() {
    let pool = pool(2);
    let spoiled = |how| amid_innocent_tasks(&pool, returns_what_spoils_encoding, how);
    assert_eq!(spoiled(How::NotAtAll).unwrap(), SpoilsEncoding(How::NotAtAll));
    let message = codec(spoiled(How::Fails));
    assert!(message.contains("SpoilsEncoding"), "{message}");
    assert_eq!(panicked(spoiled(How::Panics)).0, "spoiled by a panic");
    assert_eq!(pool.worker_restarts(), 0);
    assert_eq!(worker_died(spoiled(How::Exits)).1, Exit::Code(4));
    assert_eq!(worker_died(spoiled(How::Aborts)).1, Exit::Signal(6));
}

#[test]
fn a_value_the_host_cannot_decode_fails_only_its_task() {
    let pool = pool(2);
    let message = codec(amid_innocent_tasks(&pool, returns_what_spoils_decoding, How::Fails));
    assert!(message.contains("SpoilsDecoding"), "{message}");
    assert_eq!(pool.worker_restarts(), 0);
}

#[test]
fn memory_used_by_a_task_is_not_the_hosts() {
    assert_eq!(amid_innocent_tasks(&pool(2), allocates, 256 << 20).unwrap(), 256 << 20);
}

#[test]
fn a_large_value_arrives_whole() {
    let bytes = amid_innocent_tasks(&pool(2), returns_bytes, 16 << 20).unwrap();
    assert!(bytes == returns_bytes(16 << 20));
}

#[test]
fn a_grandchild_dies_with_its_worker() {
    let pool = pool(1);
    let grandchild = outcome(pool.submit(leaves_a_grandchild, false).unwrap()).unwrap();
    assert!(processes::is_alive(grandchild));
    worker_died(amid_innocent_tasks(&pool, aborts, ()));
    brigade_testkit::wait_until("the grandchild's death", brigade_testkit::BOUND, || {
        !processes::is_alive(grandchild)
    });
}

#[test]
fn a_grandchild_holding_the_streams_delays_nothing() {
    let pool = pool(1);
    let grandchild = outcome(pool.submit(leaves_a_grandchild, true).unwrap()).unwrap();
    worker_died(amid_innocent_tasks(&pool, aborts, ()));
    {
        let _watchdog = Watchdog::new(
            "a shutdown while a grandchild lives",
            Duration::from_secs(10 * PATIENCE),
        );
        pool.shutdown().unwrap();
    }
    assert!(
        processes::is_alive(grandchild),
        "it left the group: nobody but the task knows about it"
    );
    processes::hit(grandchild, processes::Signal::KILL);
}

#[test]
fn a_task_may_print_any_amount() {
    // In a separate program, whose output can be counted.
    let output = Helper::new(env!("CARGO_BIN_EXE_host")).argument("print").output();
    assert!(output.status.success(), "{}", output.status);
    assert_eq!((output.stdout.len(), output.stderr.len()), (MEBIBYTE, MEBIBYTE));
}

#[test]
fn an_error_names_the_task_and_its_label() {
    let pool = pool(1);
    let handle = pool.task(aborts).label("thumbnail 7").submit(()).unwrap();
    let id = handle.id();
    let error = outcome(handle).unwrap_err();
    assert_eq!((error.task(), error.label(), error.attempt()), (Some(id), Some("thumbnail 7"), 1));
    let text = error.to_string();
    for part in [id.to_string(), "thumbnail 7".to_owned(), "SIGABRT".to_owned()] {
        assert!(text.contains(&part), "{part} is missing in {text:?}");
    }
    let label = "resize 8";
    let error = outcome(pool.task(panics_with_str).label(label).submit(()).unwrap()).unwrap_err();
    assert!(
        error.to_string().contains(label) && error.to_string().contains("a literal"),
        "{error}"
    );
}

/// Dies in every attempt before `last`.
fn survives_at(last: u32) -> u32 {
    if attempt() < last {
        std::process::abort();
    }
    attempt()
}

#[test]
fn a_task_with_retries_runs_again_when_its_worker_dies() {
    let pool = pool(2);
    let handle = pool.task(survives_at).retries(4).submit(4).unwrap();
    assert_eq!(outcome(handle).unwrap(), 4);
    assert_eq!(pool.worker_restarts(), 3);
}

#[test]
fn when_retries_are_used_up_the_last_death_is_the_error() {
    let pool = pool(1);
    let error = outcome(pool.task(survives_at).retries(2).submit(100).unwrap()).unwrap_err();
    assert!(error.is_worker_death());
    assert_eq!(error.attempt(), 3);
    assert!(error.to_string().contains("attempt 3"), "{error}");
}

#[test]
fn a_panic_is_not_retried() {
    let pool = pool(1);
    let error = outcome(pool.task(panics_with_str).retries(5).submit(()).unwrap()).unwrap_err();
    assert!(error.is_panic());
    assert_eq!(error.attempt(), 1);
}

#[test]
fn each_crashed_task_reports_its_own_worker() {
    let pool = pool(2);
    let handles: Vec<_> = (0..150).map(|code| pool.submit(exits, code % 100).unwrap()).collect();
    for (code, handle) in (0..).zip(handles) {
        assert_eq!(
            worker_died(outcome(handle)).1,
            Exit::Code(code % 100),
            "and the restart budget is not spent"
        );
    }
    assert_eq!(amid_innocent_tasks(&pool, square, 3).unwrap(), 9);
}

#[test]
fn a_death_reports_how_long_the_task_had_run() {
    let dies_after = |milliseconds: u64| {
        sleeps(milliseconds);
        std::process::abort()
    };
    let outcome: Result<(), TaskError> = outcome(pool(1).submit(dies_after, 30).unwrap());
    let elapsed = outcome.unwrap_err().elapsed().unwrap();
    assert!(
        elapsed >= Duration::from_millis(30) && elapsed < Duration::from_secs(10),
        "{elapsed:?}"
    );
}

#[test]
fn a_lost_exit_status_is_reported_as_unknown() {
    let mut host = Helper::new("/usr/bin/env")
        .argument("--ignore-signal=CHLD")
        .argument(env!("CARGO_BIN_EXE_host"))
        .argument("dies");
    let output = host.output();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(said.contains("exit status is unknown") && said.contains("SIGCHLD"), "{said}");
    assert!(!said.contains("exit code"), "{said}");
}

#[test]
fn a_failed_allocation_is_named() {
    // With a backtrace the tail would be long; without one it ends with a note on how to get one.
    let pool = builder(1).env("RUST_BACKTRACE", "0").build().unwrap();
    let takes_too_much = |bytes: usize| vec![1_u8; bytes].len();
    let error = outcome(pool.submit(takes_too_much, usize::MAX >> 2).unwrap()).unwrap_err();
    assert!(error.to_string().contains("memory allocation of "), "{error}");
}
