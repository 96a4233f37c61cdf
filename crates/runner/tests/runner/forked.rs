//! Tests of processes that fork without `exec`: the copy neither continues the original's run, nor
//! ends its jobs.
//!
//! Each test has a process of its own, also under `cargo test`, which runs tests as threads of one
//! process. There, the children of another test would look like this test's, and a copy would never
//! get a lock that another test's thread held at the moment of the fork.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::env;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use brigade_runner::{Event, Job, Runner, RunnerError};
use brigade_testkit::{Side, copy_process, processes};

/// Set in a process that runs a single test.
const ALONE: &str = "BRIGADE_RUNNER_TEST_ALONE";

/// Runs a test, whose name is `name`, in a process without another thread.
fn alone(name: &str, test: impl FnOnce()) {
    if env::var_os(ALONE).is_some() {
        return test();
    }
    let output = Command::new(env::current_exe().expect("this program"))
        .args([&format!("forked::{name}"), "--exact", "--test-threads=1"])
        .env(ALONE, "")
        .output()
        .expect("the process starts");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && report.contains("1 passed"), "{report}");
}

fn is_refused<T: std::fmt::Debug>(result: Result<T, RunnerError>) {
    let error = result.expect_err("the original has the jobs");
    assert!(matches!(error, RunnerError::Forked), "{error}");
    assert!(error.to_string().contains("build a runner after the fork"), "{error}");
}

/// Runs two jobs, and forks while both run. The copy leaves the run by a panic if `panics`, else by
/// returning.
fn fork_in_the_closure(panics: bool) {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().to_owned();
    let job = |number| {
        let line = format!("until test -e go; do sleep 0.01; done; echo {number}");
        Job::shell(line).folder(&path)
    };
    let jobs = [job(1), job(2)];
    let runner = Runner::builder().unpinned().jobs(2).build();
    let (mut in_the_copy, mut started, mut succeeded) = (None, 0, 0);
    let on_event = |event: Event| match event {
        Event::Started { .. } => {
            started += 1;
            if started < 2 {
                return;
            }
            // The guardian and the two jobs.
            let children = processes::children();
            assert!(children.len() >= 3);
            match copy_process() {
                Side::Original(copy) => {
                    copy.assert_success();
                    assert_eq!(processes::children(), children, "the copy must not end them");
                    fs::write(path.join("go"), "").expect("a file");
                }
                Side::Copy(copy) => {
                    in_the_copy = Some(copy);
                    assert!(!panics, "as planned");
                }
            }
        }
        Event::Finished(outcome) => succeeded += usize::from(outcome.ending.is_success()),
        _ => {}
    };
    let result = catch_unwind(AssertUnwindSafe(|| runner.expect("valid").run(jobs, on_event)));
    if let Some(copy) = in_the_copy {
        // The directory belongs to the original.
        std::mem::forget(folder);
        copy.end_after(|| match result {
            Ok(result) => is_refused(result),
            Err(_) => assert!(panics),
        });
    }
    result.expect("no panic").expect("a run");
    assert_eq!((started, succeeded), (2, 2));
}

#[test]
fn a_fork_that_returns_from_the_closure_gets_an_error() {
    alone("a_fork_that_returns_from_the_closure_gets_an_error", || fork_in_the_closure(false));
}

#[test]
fn a_fork_that_panics_in_the_closure_ends_no_job() {
    alone("a_fork_that_panics_in_the_closure_ends_no_job", || fork_in_the_closure(true));
}

#[test]
fn a_runner_built_before_a_fork_refuses_to_run_in_the_copy() {
    alone("a_runner_built_before_a_fork_refuses_to_run_in_the_copy", run_in_a_copy);
}

fn run_in_a_copy() {
    let runner = Runner::builder().unpinned().build().expect("valid");
    let copy = match copy_process() {
        Side::Original(copy) => copy,
        Side::Copy(copy) => copy.end_after(|| {
            runner.stopper().kill();
            is_refused(runner.run([Job::new("true")], |_| ()));
        }),
    };
    copy.assert_success();
    let summary = runner.run([Job::new("true")], |_| ()).expect("a run");
    assert_eq!(summary.succeeded, 1);
}
