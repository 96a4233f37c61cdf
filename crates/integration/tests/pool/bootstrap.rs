//! A worker that fails to start breaks its pool in bounded time, with the cause, and without a
//! loop.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use brigade::{Link, Pool, PoolBuilder, PoolError, Start, SubmitErrorKind, TaskErrorKind};
use brigade_integration::{Helper, builder};
use brigade_sys::executable::build_identity;
use brigade_testkit::faults::sleeps;
use brigade_testkit::{BOUND, Random, Watchdog, outcome, processes, wait_until};
use tempfile::TempDir;

/// For workers that answer at once: much longer than a loaded machine takes to start one.
const AMPLE: Duration = Duration::from_secs(20);

/// For a worker that never answers.
const SHORT: Duration = Duration::from_millis(250);

/// Failed starts in a row before the pool gives up, plus one that may be under way in the second
/// slot.
const MAX_RUNS: usize = 6;

/// A program that is started as a worker. Its runs are counted and its processes can be found.
struct Program {
    command: Command,
    folder: TempDir,
    cookie: String,
    start_timeout: Duration,
}

impl Program {
    fn new(path: impl AsRef<std::ffi::OsStr>) -> Self {
        let folder = TempDir::new().unwrap();
        let cookie = Random::fresh_seed().to_string();
        let mut command = Command::new(path);
        command
            .env("BAD_WORKER_RUNS", folder.path().join("runs"))
            .env("BRIGADE_TEST_COOKIE", &cookie);
        Self { command, folder, cookie, start_timeout: AMPLE }
    }

    fn bad(mode: &str) -> Self {
        let mut program = Self::new(env!("CARGO_BIN_EXE_bad_worker"));
        let identity: Vec<String> = build_identity().as_bytes().iter().map(u8::to_string).collect();
        program.command.arg(mode).env("BAD_WORKER_IDENTITY", identity.join(","));
        program
    }

    fn shell(script: &str) -> Self {
        let mut program = Self::new("/bin/sh");
        program.command.args(["-c", script]).arg(std::env::current_exe().unwrap());
        program
    }

    fn start_timeout(self, start_timeout: Duration) -> Self {
        Self { start_timeout, ..self }
    }

    fn pool(&self, builder: PoolBuilder) -> Pool {
        builder.start_timeout(self.start_timeout).worker_command(&self.command).build().unwrap()
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.folder.path().join("runs")).unwrap_or_default().lines().count()
    }

    /// Checks the promises of a pool whose workers cannot start. Returns the reason that the pool
    /// gives.
    #[track_caller]
    fn breaks_its_pool(&self) -> String {
        let _watchdog = Watchdog::new(format!("the end of {:?}", self.command), BOUND);
        let pool = self.pool(builder(2));
        let error = outcome(pool.submit(sleeps, 1).unwrap()).unwrap_err();
        let TaskErrorKind::PoolBroken { reason } = error.kind() else { panic!("{error:?}") };
        assert!(matches!(pool.warm_up(), Err(PoolError::Broken { .. })));
        let error = pool.submit(sleeps, 1).unwrap_err();
        assert!(matches!(error.kind(), SubmitErrorKind::PoolBroken { .. }), "{error:?}");
        assert_eq!(error.into_argument(), 1);
        assert!(matches!(pool.shutdown(), Err(PoolError::Broken { .. })));
        assert!(self.runs() <= MAX_RUNS, "{} runs", self.runs());
        wait_until("the end of all that was started", BOUND, || {
            processes::with_variable("BRIGADE_TEST_COOKIE", &self.cookie).is_empty()
        });
        reason.clone()
    }
}

#[track_caller]
fn assert_contains(reason: &str, parts: &[&str]) {
    for part in parts {
        assert!(reason.contains(part), "{part:?} is missing in {reason:?}");
    }
}

#[test]
fn a_worker_that_never_answers_is_given_up_at_the_deadline() {
    let silent = Program::bad("silent").start_timeout(SHORT);
    assert_contains(&silent.breaks_its_pool(), &["250ms", "brigade::init()"]);
}

#[test]
fn a_worker_that_sends_garbage_is_refused() {
    for mode in ["garbage", "half"] {
        let program = Program::bad(mode);
        assert_contains(&program.breaks_its_pool(), &["handshake"]);
    }
}

#[test]
fn a_worker_that_lies_is_refused() {
    for (mode, part) in [("token", "token"), ("early", "ready"), ("refusing", "not on a Sunday")] {
        let reason = Program::bad(mode).breaks_its_pool();
        assert!(reason.contains(part), "{mode}: {part:?} is missing in {reason:?}");
    }
}

#[test]
fn a_protocol_mismatch_names_both_versions_and_a_remedy() {
    use brigade_wire::version::PROTOCOL_VERSION;
    let [ours, next] = [PROTOCOL_VERSION, PROTOCOL_VERSION + 1].map(|it| format!("version {it}"));
    let older_host = Program::bad("version").breaks_its_pool();
    assert_contains(&older_host, &[&ours, &next, "build both from the same release"]);
    // The same mismatch as in a worker whose host is newer than itself.
    let script =
        format!("BRIGADE_WORKER={}:${{BRIGADE_WORKER#*:}} exec \"$0\"", PROTOCOL_VERSION + 1);
    let older_worker = Program::shell(&script).breaks_its_pool();
    assert_contains(&older_worker, &["refused", &ours, &next, "build both from the same release"]);
}

#[test]
fn a_worker_that_names_a_missing_server_is_refused() {
    // Only the ipc link has a server.
    let program = Program::bad("nowhere");
    let pool = program.pool(builder(1).link(Link::Ipc));
    let error = outcome(pool.submit(sleeps, 0).unwrap()).unwrap_err();
    assert!(error.to_string().contains("link cannot be opened"), "{error}");
}

#[test]
fn a_failed_start_reports_exit_code_and_last_words() {
    assert_contains(&Program::bad("exits").breaks_its_pool(), &["exit code 3", "no license found"]);
}

#[test]
fn a_killed_start_reports_the_signal() {
    assert_contains(&Program::bad("killed").breaks_its_pool(), &["SIGKILL"]);
}

#[test]
fn a_worker_that_hangs_up_is_given_up() {
    // The worker lives on, so the pool waits for its end until the deadline.
    let closes = Program::bad("closes").start_timeout(Duration::from_secs(3));
    assert_contains(&closes.breaks_its_pool(), &["closed its control socket"]);
}

#[test]
fn another_program_is_refused_at_once() {
    let program = Program::new(env!("CARGO_BIN_EXE_other_build"));
    assert_contains(&program.breaks_its_pool(), &["build"]);
    assert!(
        program.runs() <= 2,
        "another try changes nothing, but there were {} runs",
        program.runs()
    );
}

#[test]
fn a_missing_program_is_named() {
    let program = Program::new("/nowhere/to/be/found");
    assert_contains(&program.breaks_its_pool(), &["No such file"]);
}

#[test]
fn a_program_without_init_is_an_error_that_says_so() {
    let output = Helper::new(env!("CARGO_BIN_EXE_uninitialized")).output();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert_contains(&text, &["brigade::init()", "first line of main"]);
}

#[test]
fn a_worker_that_forgot_init_does_not_become_a_host() {
    let program = Program::new(env!("CARGO_BIN_EXE_uninitialized"));
    assert_contains(&program.breaks_its_pool(), &["exit code 2", "init()"]);
}

#[test]
fn a_pool_of_a_wrapped_worker_works() {
    let program = Program::shell("exec \"$0\"");
    let pool = program.pool(builder(2));
    assert_eq!(pool.map(sleeps, [1, 2, 3]).map(Result::unwrap).sum::<u64>(), 6);
}

#[test]
fn occasional_failed_starts_are_retried() {
    let program = Program::shell(
        "echo run >> \"$BAD_WORKER_RUNS\"; [ $(wc -l < \"$BAD_WORKER_RUNS\") -gt 2 ] || exit 1; exec \"$0\"",
    );
    let pool = program.pool(builder(1).start(Start::Exec));
    assert_eq!(outcome(pool.submit(sleeps, 1).unwrap()).unwrap(), 1);
    assert_eq!(program.runs(), 3);
}

#[test]
fn a_worker_has_the_environment_and_folder_of_its_command() {
    fn surroundings(name: String) -> (Option<String>, std::path::PathBuf) {
        (std::env::var(name).ok(), std::env::current_dir().unwrap())
    }
    let mut program = Program::new(std::env::current_exe().unwrap());
    let folder = program.folder.path().canonicalize().unwrap();
    program.command.env("BRIGADE_TEST_GREETING", "hello").current_dir(&folder);
    let pool = program.pool(builder(1));
    let name = "BRIGADE_TEST_GREETING".to_owned();
    let found = outcome(pool.submit(surroundings, name).unwrap()).unwrap();
    assert_eq!(found, (Some("hello".to_owned()), folder));
}

#[test]
fn children_of_tasks_do_not_inherit_the_worker_marker() {
    let marked =
        |(): ()| std::env::vars_os().any(|(name, _)| name == brigade_wire::version::MARKER);
    let pool = builder(1).build().unwrap();
    assert!(!outcome(pool.submit(marked, ()).unwrap()).unwrap());
}

#[test]
fn a_program_that_cannot_be_executed_is_tried_once() {
    let folder = TempDir::new().unwrap();
    let (forbidden, garbage) = (folder.path().join("forbidden"), folder.path().join("garbage"));
    fs::write(&forbidden, "#!/bin/sh\n").unwrap();
    fs::write(&garbage, "garbage").unwrap();
    fs::set_permissions(&garbage, PermissionsExt::from_mode(0o755)).unwrap();
    let missing = folder.path().join("missing");
    for path in [missing.as_path(), &forbidden, &garbage, &garbage.join("below")] {
        let reason = Program::new(path).breaks_its_pool();
        assert_contains(&reason, &[path.to_str().unwrap(), "execute", "`worker_command`"]);
        assert!(!reason.contains("starts in a row"), "{reason}");
    }
    let mut elsewhere = Program::shell("exit 0");
    elsewhere.command.current_dir(&missing);
    let reason = elsewhere.breaks_its_pool();
    assert_contains(&reason, &[missing.to_str().unwrap(), "enter the folder", "`current_dir`"]);
}

#[test]
fn workers_that_keep_dying_idle_break_the_pool() {
    let pool = builder(1).restart_budget(3, Duration::from_secs(60)).build().unwrap();
    let _watchdog = Watchdog::new("a broken pool", BOUND);
    let mut killed = BTreeSet::new();
    while pool.warm_up().is_ok() {
        // The pool may not have noticed the last death yet: then it is the same pid again.
        killed.extend(
            pool.worker_pids()
                .into_iter()
                .filter(|pid| processes::hit_child(*pid, processes::Signal::KILL)),
        );
    }
    assert_eq!(killed.len(), 4, "the budget allows three");
    let error = pool.submit(sleeps, 1).unwrap_err();
    assert!(error.to_string().contains("budget"), "{error}");
    assert!(error.to_string().contains("the last one ended by SIGKILL (signal 9)"), "{error}");
}
