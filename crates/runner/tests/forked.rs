//! A process that forks without `exec`: the copy neither goes on with a run of the original, nor ends its jobs.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use brigade_runner::{Event, Job, Runner, RunnerError};
use brigade_testkit::{Side, copy_process, processes};

fn is_refused<T: std::fmt::Debug>(result: Result<T, RunnerError>) {
    let error = result.expect_err("the original has the jobs");
    assert!(matches!(error, RunnerError::Forked), "{error}");
    assert!(error.to_string().contains("build a runner after the fork"), "{error}");
}

/// Runs two jobs, and forks while both run; the copy leaves the run by a panic or as it likes.
fn fork_in_the_closure(panics: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_owned();
    let job = |number| {
        let line = format!("until test -e go; do sleep 0.01; done; echo {number}");
        Job::shell(line).folder(&path)
    };
    let jobs = [job(1), job(2)];
    let runner = Runner::builder().unpinned().jobs(2.try_into().expect("not 0")).build();
    let (mut in_the_copy, mut started, mut succeeded) = (None, 0, 0);
    let tell = |event: Event<'_>| match event {
        Event::Started { .. } => {
            started += 1;
            if started < 2 {
                return;
            }
            // The guardian and the jobs.
            let children = processes::children();
            assert!(children.len() >= 3);
            match copy_process() {
                Side::Original(copy) => {
                    copy.is_well();
                    assert_eq!(processes::children(), children, "the copy has ended them");
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
    let result = catch_unwind(AssertUnwindSafe(|| runner.expect("valid").run(jobs, tell)));
    if let Some(copy) = in_the_copy {
        // The folder is the original's.
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
fn a_fork_that_returns_from_the_closure_ends_with_an_error_and_no_job_ends() {
    fork_in_the_closure(false);
}

#[test]
fn a_fork_that_panics_in_the_closure_ends_no_job() {
    fork_in_the_closure(true);
}

#[test]
fn a_runner_that_was_built_before_a_fork_is_an_error_in_it() {
    let runner = Runner::builder().unpinned().build().expect("valid");
    let copy = match copy_process() {
        Side::Original(copy) => copy,
        Side::Copy(copy) => copy.end_after(|| {
            runner.stopper().kill();
            is_refused(runner.run([Job::new("true")], |_| ()));
        }),
    };
    copy.is_well();
    let summary = runner.run([Job::new("true")], |_| ()).expect("a run");
    assert_eq!(summary.succeeded, 1);
}
