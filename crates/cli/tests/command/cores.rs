//! Tests of the cores that jobs run on.

use std::io::{BufRead, BufReader};

use crate::common::{TestDir, numbered, until};

/// Returns the number of cores that jobs can be pinned to.
fn usable(dir: &TestDir) -> usize {
    let ran = dir.run(&["--json", "--", "true", ":::", "x"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn two_runs_never_share_a_core() {
    let dir = TestDir::new();
    if usable(&dir) < 2 {
        return;
    }
    let job = "echo $BRIGADE_CORES; until test -e over; do sleep 0.01; done; : {}";
    let mut first = dir.spawn(&["run", "-j1", "--line-buffer", "--shell", "--", job, ":::", "x"]);
    let mut core = String::new();
    let mut output = BufReader::new(first.stdout.take().expect("piped"));
    output.read_line(&mut core).expect("a pipe");
    let second = dir.run(&["-j1", "--shell", "--", "echo $BRIGADE_CORES", "#", ":::", "x"]);
    dir.write("over", "");
    assert!(first.wait().expect("own child").success());
    assert_eq!(second.status, 0, "{}", second.stderr);
    assert_ne!(second.stdout, core);
}

#[test]
fn a_run_waits_for_cores_of_another_run_and_says_so() {
    let dir = TestDir::new();
    let job = "touch begun-{}; until test -e over; do sleep 0.01; done";
    let count = usable(&dir);
    let list = numbered(count, |number| format!("{number}\n"));
    dir.write("list", list);
    let mut first = dir.spawn(&["run", "--shell", "--", job, "::::", "list"]);
    until("the jobs", || (1..=count).all(|number| dir.path(&format!("begun-{number}")).exists()));
    let mut second = dir.spawn(&["run", "--", "touch", "ran", ":::", "x"]);
    let mut said = String::new();
    let mut errors = BufReader::new(second.stderr.take().expect("piped"));
    errors.read_line(&mut said).expect("a pipe");
    assert!(said.contains("waiting for cores that other runs have leased"), "{said}");
    assert!(!dir.path("ran-x").exists());
    dir.write("over", "");
    assert!(first.wait().expect("own child").success());
    assert!(second.wait().expect("own child").success());
}

#[test]
fn a_run_inside_a_job_uses_the_cores_of_the_job() {
    let dir = TestDir::new();
    let brigade = env!("CARGO_BIN_EXE_brigade");
    dir.write("inner", format!("{brigade} run --shell -- 'echo $BRIGADE_CORES' '#' ::: x"));
    let ran = dir.run(&["-j1", "--", "sh", "inner", ":::", "x"]);
    assert_eq!((ran.status, ran.stdout.trim().is_empty()), (0, false), "{}", ran.stderr);
}

#[test]
fn more_jobs_than_cores_run_at_once() {
    let dir = TestDir::new();
    let job = "touch begun-{}; until test -e begun-20; do sleep 0.01; done; echo $BRIGADE_CORES";
    let numbers: Vec<String> = (1..=20).map(|number| number.to_string()).collect();
    let mut arguments = vec!["-j", "20", "--shell", "--", job, ":::"];
    arguments.extend(numbers.iter().map(String::as_str));
    // With one core for each, the first jobs would wait for the last one forever.
    let ran = dir.run(&[&["--timeout", "30"][..], &arguments].concat());
    let jobs_are_pinned = usable(&dir) >= 20;
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout.trim().is_empty(), !jobs_are_pinned);
}

#[test]
fn wishes_for_cores_that_cannot_be_met_are_refused() {
    let dir = TestDir::new();
    for (arguments, message) in [
        (&["-j", "5000", "-c", "2", "--", "touch", ":::", "ran"][..], "need 10000 cores"),
        (&["-j", "5000", "--policy", "scatter", "--", "touch", ":::", "ran"], "need 5000 cores"),
        (&["-c", "2", "--no-pin", "--", "touch", ":::", "ran"], "cannot be used with"),
    ] {
        let ran = dir.run(arguments);
        let said: Vec<&str> = ran.stderr.split_whitespace().collect();
        assert_eq!(ran.status, 255, "{arguments:?}: {}", ran.stderr);
        assert!(said.join(" ").contains(message), "{arguments:?}: {}", ran.stderr);
    }
    assert!(!dir.path("ran").exists());
}

#[test]
fn a_variable_has_the_slot_from_zero() {
    let ran = TestDir::new().run(&[
        "-j1",
        "--process-slot-var",
        "SLOT",
        "--load",
        "100000",
        "--shell",
        "--",
        "echo $SLOT {}",
        ":::",
        "a",
        "b",
    ]);
    assert_eq!(ran.stdout, "0 a\n0 b\n", "{}", ran.stderr);
}
