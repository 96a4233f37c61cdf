//! Tests of the outcomes of lists of jobs, with real processes.

use std::time::Duration;

use brigade_runner::{Builder, Ending, Event, Job, Limit, Output, Reason, Runner, Summary};

fn builder() -> Builder {
    Runner::builder().unpinned().jobs(2)
}

fn shell(lines: impl IntoIterator<Item = &'static str>) -> Vec<Job> {
    lines.into_iter().map(Job::shell).collect()
}

#[test]
fn outcomes_are_in_the_order_of_the_jobs_whatever_happens() {
    let folder = tempfile::tempdir().expect("a directory");
    let slow = "until test -e last; do sleep 0.01; done; echo slow";
    let mut jobs = shell([slow, "exit 7", "kill -9 $$", "echo err >&2"]);
    jobs.insert(1, Job::new("/nonexistent"));
    // Numbers of one's own do not change the order.
    jobs[3] = jobs[3].clone().number(50);
    jobs.push(Job::new("touch").arg("last").number(9));
    let jobs = jobs.into_iter().map(|job| job.folder(folder.path()));
    let outcomes = builder().jobs(2).build().expect("valid").run_all(jobs).expect("possible");
    let numbers: Vec<u64> = outcomes.iter().map(|outcome| outcome.number).collect();
    assert_eq!(numbers, [1, 2, 3, 50, 51, 9]);
    let is_missing =
        |ending: &Ending| matches!(ending, Ending::NotStarted(cause) if cause.code == 127);
    assert!(is_missing(&outcomes[1].ending), "{:?}", outcomes[1].ending);
    assert_eq!(outcomes[2].ending, Ending::Exited(7));
    assert_eq!(outcomes[3].ending, Ending::Signalled(9));
    assert_eq!(outcomes[0].stdout().expect("whole"), b"slow\n");
    assert_eq!(outcomes[4].stderr().expect("whole"), b"err\n");
}

#[test]
fn each_prelude_is_tried_once_and_runs_before_each_of_its_jobs() {
    let job = |prelude: &str| Job::shell("echo $SET").prelude(prelude);
    let jobs = [
        job("export SET=1"),
        job("export SET=2"),
        Job::shell("echo $SET"),
        job("export SET=1").label("again"),
    ];
    let (mut tried, mut printed) = (Vec::new(), Vec::new());
    let runner = builder().jobs(1).canary(Job::new("true")).build().expect("valid");
    let run = runner.run(jobs, |event| match event {
        Event::CanaryPassed { prelude } => tried.push(prelude),
        Event::Finished(outcome) => printed.push(outcome.stdout().expect("whole")),
        _ => {}
    });
    run.expect("possible");
    assert_eq!(printed, [&b"1\n"[..], b"2\n", b"\n", b"1\n"]);
    tried.sort();
    assert_eq!(tried, [None, Some("export SET=1".to_owned()), Some("export SET=2".to_owned())]);
}

#[test]
fn a_late_job_is_tried_again_and_a_failed_one_is_not() {
    let folder = tempfile::tempdir().expect("a directory");
    let late = "test -e tried && exit 0; touch tried; exec sleep 600";
    let jobs = shell([late, "exit 3"]).into_iter().map(|job| job.folder(folder.path()));
    let limit = Limit::Fixed(Duration::from_millis(300));
    let runner = builder().limit(limit).retries(5).retry_only_timeouts().build().expect("valid");
    let outcomes = runner.run_all(jobs).expect("possible");
    assert_eq!(outcomes[0].ending, Ending::Exited(0));
    assert!(outcomes[0].attempts > 1, "{:?}", outcomes[0]);
    assert_eq!((&outcomes[1].ending, outcomes[1].attempts), (&Ending::Exited(3), 1));
}

#[test]
fn each_job_has_an_outcome_even_if_the_run_is_halted() {
    let halt = "now,fail=1".parse().expect("valid");
    let lines = ["sleep 60", "exit 1", "echo 3", "echo 4", "echo 5"];
    let outcomes = builder().halt(halt).build().expect("valid").run_all(shell(lines));
    let outcomes = outcomes.expect("possible");
    let numbers: Vec<u64> = outcomes.iter().map(|outcome| outcome.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    assert_eq!((&outcomes[0].ending, outcomes[0].attempts), (&Ending::Stopped, 1));
    let decisive: Vec<bool> = outcomes.iter().map(|outcome| outcome.is_decisive).collect();
    assert_eq!(decisive, [false, true, false, false, false]);
    assert!(outcomes[2..].iter().all(|outcome| outcome.attempts == 0));
}

#[test]
fn a_stop_inside_the_closure_ends_the_run() {
    let runner = builder().build().expect("valid");
    let stopper = runner.stopper();
    let mut endings = Vec::new();
    let jobs = shell(["true", "exec sleep 60", "exec sleep 61", "exec sleep 62"]);
    let summary = runner.run(jobs, |event| {
        if let Event::Finished(outcome) = event {
            endings.push(outcome.ending);
            stopper.stop();
        }
    });
    let summary = summary.expect("possible");
    assert_eq!((summary.halted, summary.succeeded), (Some(Reason::Stopped), 1));
    assert!(endings[1..].iter().all(|ending| *ending == Ending::Stopped), "{endings:?}");
}

#[test]
fn a_run_is_halted_only_if_jobs_are_left() {
    let run = |lines: &[&'static str]| -> (Summary, bool) {
        let halt = "soon,fail=1".parse().expect("valid");
        let runner = builder().jobs(1).halt(halt).build().expect("valid");
        let mut is_halting = false;
        let on_event = |event| is_halting |= matches!(event, Event::Halting(_));
        let summary = runner.run(shell(lines.iter().copied()), on_event).expect("possible");
        (summary, is_halting)
    };
    let (summary, is_halting) = run(&["true", "false"]);
    assert_eq!((summary.halted, summary.failed, is_halting), (None, 1, false));
    let (summary, is_halting) = run(&["true", "false", "exit 2"]);
    assert_eq!((summary.halted, summary.failed, is_halting), (Some(Reason::Halted), 1, true));
}

#[test]
fn an_output_that_was_cut_is_not_taken_for_a_whole_one() {
    for (output, is_whole) in [(Output::Tail(4), false), (Output::Whole, true)] {
        let runner = builder().output(output).build().expect("valid");
        let outcomes = runner.run_all(shell(["echo 12345"])).expect("possible");
        match outcomes[0].stdout() {
            Ok(whole) => assert!(is_whole && whole == b"12345\n"),
            Err(error) => assert!(!is_whole && error.to_string().contains("2 bytes"), "{error}"),
        }
    }
}

#[test]
fn zeros_are_refused_by_name() {
    let error = builder().jobs(0).build().expect_err("zero");
    assert!(error.to_string().starts_with("`jobs` must be from 1"), "{error}");
    let error = builder().cores_per_job(0).build().expect_err("zero");
    assert_eq!(error.to_string(), "`cores_per_job` must be at least 1");
    let pinned = Runner::builder().build().expect("cores");
    assert!(pinned.run_all([Job::new("true").cores(0)]).is_err());
}
