//! Functions with names, in workers that are a separate program.

use std::process::Command;

use brigade::worker::Server;
use brigade::{Key, Pool, PoolBuilder, SubmitErrorKind, TaskErrorKind};
use brigade_integration::{Helper, builder, worker_died};
use brigade_testkit::faults::{SpoilsEncoding, echoes, sleeps};
use brigade_testkit::{BOUND, Watchdog, outcome};

// This test program can be a worker too: the same build, with names.
pub(super) fn serve() {
    Server::new().task("triple", |number: u64| 3 * number).version("ours").run();
}

/// Builds a pool whose workers are the program `server`, reporting this version.
fn server(version: Option<&str>) -> PoolBuilder {
    let mut command = Command::new(env!("CARGO_BIN_EXE_server"));
    command.args(version);
    builder(2).worker_command(&command)
}

fn pool() -> Pool {
    server(None).build().unwrap()
}

/// Returns the reason why no worker of this pool can be used.
#[track_caller]
fn refusal(builder: PoolBuilder) -> String {
    let _watchdog = Watchdog::new("a pool whose workers are refused", BOUND);
    let pool = builder.build().unwrap();
    let error = outcome(pool.submit::<_, u64, u64, _>("double", 1).unwrap()).unwrap_err();
    let TaskErrorKind::PoolBroken { reason } = error.kind() else { panic!("{error:?}") };
    reason.clone()
}

#[track_caller]
fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in {text:?}");
    }
}

#[test]
fn another_program_runs_functions_by_name() {
    let pool = pool();
    pool.warm_up().unwrap();
    let handles: Vec<_> =
        (0..200).map(|n| pool.submit::<_, u64, u64, _>("double", n).unwrap()).collect();
    for (number, handle) in (0..).zip(handles) {
        assert_eq!(outcome(handle).unwrap(), 2 * number);
    }
    let slot = pool.try_submit::<_, (), Option<u32>, _>("slot", ()).unwrap();
    assert!(outcome(slot).unwrap().is_some());
    let large = vec![7_u8; 1 << 20];
    let echo = pool.submit::<_, Vec<u8>, Vec<u8>, _>("echo", large.clone()).unwrap();
    assert_eq!(outcome(echo).unwrap(), large, "arguments in the arena come with a name as well");
}

#[test]
fn a_named_task_has_the_settings_of_any_task() {
    let pool = pool();
    let task = pool.task::<_, u32, u32, _>("succeeds_at").retries(2).label("third time lucky");
    assert_eq!(outcome(task.submit(3).unwrap()).unwrap(), 3);
    let error = outcome(task.submit(4).unwrap()).unwrap_err();
    assert_eq!((error.label(), error.attempt()), (Some("third time lucky"), 3));
    worker_died::<u32>(Err(error));
    let panics = pool.submit::<_, String, (), _>("panics", "as told".to_owned()).unwrap();
    assert_contains(&outcome(panics).unwrap_err().to_string(), &["panicked", "as told"]);
}

#[test]
fn an_unknown_name_is_an_error_that_lists_known_names() {
    let pool = pool();
    let error = outcome(pool.submit::<_, u64, u64, _>("duble", 1).unwrap()).unwrap_err();
    assert!(matches!(error.kind(), TaskErrorKind::Function { .. }), "{error:?}");
    assert_contains(&error.to_string(), &["unknown function \"duble\"", "\"double\", \"echo\""]);
    assert_eq!(outcome(pool.submit::<_, u64, u64, _>("double", 1).unwrap()).unwrap(), 2);
}

#[test]
fn an_invalid_name_is_a_submit_error() {
    let pool = pool();
    for name in [String::new(), "x".repeat(100_000)] {
        let error = pool.submit::<_, u64, u64, _>(name.as_str(), 7).unwrap_err();
        let SubmitErrorKind::Function { message } = error.kind() else { panic!("{error:?}") };
        assert!(message.contains("name"), "{message}");
        assert_eq!(error.into_argument(), 7);
    }
    let argument = SpoilsEncoding(brigade_testkit::faults::How::Fails);
    let error = pool.submit::<_, _, (), _>("double", argument).unwrap_err();
    assert!(matches!(error.kind(), SubmitErrorKind::Codec { .. }), "{error:?}");
}

#[test]
fn mismatched_types_are_codec_errors_and_keep_the_worker() {
    let pool = pool();
    let argument = outcome(pool.submit::<_, u8, u64, _>("echo", 9).unwrap()).unwrap_err();
    assert_contains(&argument.to_string(), &["cannot be decoded", "Vec<u8>"]);
    let result = outcome(pool.submit::<_, u64, String, _>("double", 200).unwrap()).unwrap_err();
    assert_contains(&result.to_string(), &["cannot be decoded", "String"]);
    assert_eq!(outcome(pool.submit::<_, u64, u64, _>("double", 1).unwrap()).unwrap(), 2);
    assert_eq!(pool.worker_restarts(), 0);
}

#[test]
fn a_function_offset_is_never_used_in_another_build() {
    let pool = pool();
    let error = outcome(pool.submit(|number: u64| number, 1).unwrap()).unwrap_err();
    assert!(matches!(error.kind(), TaskErrorKind::Function { .. }), "{error:?}");
    assert_contains(
        &error.to_string(),
        &["another program", "build", "by name only", "\"double\""],
    );
    for chunk in [1, 10] {
        let results: Vec<_> = pool.map(echoes, vec![vec![1]; 20]).chunk(chunk).collect();
        assert_eq!(results.len(), 20);
        for result in results {
            assert_contains(&result.unwrap_err().to_string(), &["by name only"]);
        }
    }
    assert_eq!(outcome(pool.submit::<_, u64, u64, _>("double", 1).unwrap()).unwrap(), 2);
    assert_eq!(pool.worker_restarts(), 0);
}

#[test]
fn another_build_refuses_initializers_and_finalizers() {
    let reason = refusal(server(None).initializer(|(): ()| std::process::exit(99), ()));
    assert_contains(&reason, &["another build", "initializer", "its own main"]);
    let reason = refusal(server(None).finalizer(|| std::process::exit(99)));
    assert_contains(&reason, &["another build", "finalizer"]);
}

#[test]
fn a_version_mismatch_names_both_versions() {
    let right = server(Some("1.4")).worker_version("1.4").build().unwrap();
    assert_eq!(outcome(right.submit::<_, u64, u64, _>("double", 1).unwrap()).unwrap(), 2);
    let any = server(Some("1.4")).build().unwrap();
    assert_eq!(outcome(any.submit::<_, u64, u64, _>("double", 1).unwrap()).unwrap(), 2);
    let wrong = refusal(server(Some("1.3")).worker_version("1.4"));
    assert_contains(&wrong, &["version \"1.3\"", "\"1.4\"", "worker_version", "start the program"]);
    let none = refusal(server(None).worker_version("1.4"));
    assert_contains(&none, &["no version", "\"1.4\""]);
}

#[test]
fn a_server_of_the_same_build_takes_functions_and_names() {
    let pool = builder(1).worker_version("ours").initializer(|n: u64| n, 7).build().unwrap();
    assert_eq!(outcome(pool.submit::<_, u64, u64, _>("triple", 2).unwrap()).unwrap(), 6);
    assert_eq!(outcome(pool.submit(sleeps, 1).unwrap()).unwrap(), 1);
    let state = |(): ()| brigade::worker::state::<u64>().copied();
    assert_eq!(outcome(pool.submit(state, ()).unwrap()).unwrap(), Some(7));
}

#[test]
fn a_program_without_names_explains_how_to_add_them() {
    let output = Helper::new(env!("CARGO_BIN_EXE_host")).argument("named").output();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_contains(&text, &["unknown function \"double\"", "brigade::worker::Server"]);
}

#[test]
fn a_host_that_only_uses_servers_needs_no_init() {
    let output = Helper::new(env!("CARGO_BIN_EXE_uninitialized"))
        .argument(env!("CARGO_BIN_EXE_server"))
        .output();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_server_not_started_as_a_worker_returns_to_main() {
    let output = Helper::new(env!("CARGO_BIN_EXE_server")).output();
    assert_eq!(output.status.code(), Some(2));
}

/// The program has a function of this name for numbers.
static DOUBLE_OF_TEXT: Key<String, String> = Key::named("double");
static DOUBLE: Key<u64, u64> = Key::named("double");

#[test]
fn a_key_with_other_types_than_the_program_is_refused() {
    let pool = pool();
    assert_eq!(outcome(pool.submit(&DOUBLE, 21).unwrap()).unwrap(), 42);
    // A length of two, and then "al": before, a number was made of it.
    let handle = pool.submit(&DOUBLE_OF_TEXT, "al".to_owned()).unwrap();
    let error = outcome(handle).unwrap_err();
    assert!(matches!(error.kind(), TaskErrorKind::Function { .. }), "{error}");
    assert_contains(&error.to_string(), &["\"double\" has other types", "u64 -> u64"]);
    let results: Vec<_> = pool.map(&DOUBLE_OF_TEXT, ["a".to_owned()]).collect();
    assert!(results[0].is_err());
}
