//! Tests of the joblog after a kill, and of resuming.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;

use crate::common::{TestDir, numbered, until};

/// Returns how many successes the log records for each job.
fn successes(log: &str) -> HashMap<u64, usize> {
    let mut successes = HashMap::new();
    for line in log.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        if columns[6] == "0" && columns[7] == "0" {
            *successes.entry(columns[0].parse().expect("a number")).or_default() += 1;
        }
    }
    successes
}

#[test]
fn a_killed_run_is_resumed_with_one_success_per_job() {
    const JOBS: usize = 300;
    let dir = TestDir::new();
    let list = numbered(JOBS, |number| format!("echo {number} >> runs\n"));
    dir.write("list.txt", &list);
    let mut brigade = dir.spawn(&["run", "--joblog", "log", "list.txt"]);
    until("a third of the jobs", || dir.read("log").lines().count() > JOBS / 3);
    brigade.kill().expect("own child");
    brigade.wait().expect("own child");
    let before = successes(&dir.read("log")).len();
    assert!(before < JOBS, "it was killed too late for this test");
    // Imitates a last line cut by the kill.
    let log = dir.path("log");
    let mut file = OpenOptions::new().append(true).open(&log).expect("disk");
    file.write_all(b"299\t:\t1795").expect("disk");
    drop(file);
    let ran = dir.run(&["--joblog", "log", "--resume", "list.txt"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let after = successes(&dir.read("log"));
    assert_eq!(after.len(), JOBS);
    assert!(after.values().all(|count| *count == 1), "{after:?}");
    // Only the jobs that ran during the kill ran again.
    let runs = dir.read("runs").lines().count();
    assert!((JOBS..=JOBS + 64).contains(&runs), "{runs}");
}

#[test]
fn resuming_runs_only_jobs_without_a_success() {
    let dir = TestDir::new();
    let command = ["--", "sh", "-c", "echo {}; [ -e fixed ] || exit {}", ":::", "0", "1", "2"];
    let first = dir.run(&[&["--joblog", "log"][..], &command].concat());
    assert_eq!(first.status, 2);
    dir.write("fixed", "");
    for option in ["--resume", "--resume-failed"] {
        let again = dir.run(&[&["-k", "--joblog", "log", option][..], &command].concat());
        let expected = if option == "--resume" { "1\n2\n" } else { "" };
        assert_eq!((again.stdout.as_str(), again.status), (expected, 0), "{option}");
    }
}

#[test]
fn a_changed_list_is_not_mistaken_for_the_old_one() {
    let dir = TestDir::new();
    dir.run(&["--joblog", "log", "--", "echo", ":::", "a", "b"]);
    let ran = dir.run(&["--joblog", "log", "--resume", "--", "echo", ":::", "b", "c"]);
    assert_eq!(ran.status, 255);
    assert!(ran.stderr.contains("job 1 is not the job"), "{}", ran.stderr);
    let log = dir.read("log");
    // Nothing runs before the difference is found.
    for (list, input) in [(&[":::", "a", "c", "ran"][..], ""), (&["::::", "list"], "a\nc\nran\n")] {
        dir.write("list", input);
        let options = ["--joblog", "log", "--resume", "-j1", "--", "echo"];
        let ran = dir.run(&[&options[..], list].concat());
        assert_eq!((ran.stdout.as_str(), ran.status), ("", 255));
        assert!(ran.stderr.contains("job 2 is not the job"), "{}", ran.stderr);
    }
    dir.write("commands", "true\n");
    dir.run(&["--joblog", "other", "commands"]);
    dir.write("commands", "echo new\n");
    assert_eq!(dir.run(&["--joblog", "other", "--resume", "commands"]).stdout, "");
    assert_eq!(dir.read("log"), log);
}

#[test]
fn a_changed_environment_is_not_mistaken_for_the_old_one() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("other")).expect("a directory");
    let job = |more: &str| format!("[[job]]\ncommand = ['sh', '-c', 'echo $SEED; cat']\n{more}\n");
    dir.write("jobs.toml", job("env = { SEED = '1' }"));
    assert_eq!(dir.run(&["--joblog", "log", "jobs.toml"]).status, 0);
    assert_eq!(dir.run(&["--joblog", "log", "--resume", "jobs.toml"]).stdout, "");
    for other in ["env = { SEED = '2' }", "env = { SEED = '1' }\nfolder = 'other'", "input = 'x'"] {
        dir.write("jobs.toml", job(other));
        let ran = dir.run(&["--joblog", "log", "--resume", "jobs.toml"]);
        assert_eq!(ran.status, 255, "{other}");
        assert!(ran.stderr.contains("job 1 is not the job"), "{}", ran.stderr);
    }
}

#[test]
fn commands_that_contain_their_slot_are_compared_as_well() {
    let dir = TestDir::new();
    dir.run(&["--joblog", "log", "--", "echo", "{%}", "{}", ":::", "a", "b"]);
    let again = ["--joblog", "log", "--resume", "-j1", "--", "echo", "{%}", "{}", ":::"];
    let with = |list: [&'static str; 2]| dir.run(&[&again[..], &list[..]].concat());
    assert_eq!(with(["a", "b"]).status, 0);
    assert_eq!(with(["b", "c"]).status, 255);
}

#[test]
fn a_joblog_belongs_to_one_run_at_a_time() {
    let dir = TestDir::new();
    let job = "echo {} >> begun; until test -e over; do sleep 0.01; done";
    let mut first = dir.spawn(&["run", "--joblog", "log", "--shell", "--", job, ":::", "a"]);
    until("the first run", || dir.read("begun") == "a\n");
    for option in ["--line-buffer", "--resume"] {
        let ran = dir.run(&["--joblog", "log", option, "--", "touch", ":::", "ran"]);
        let said: Vec<&str> = ran.stderr.split_whitespace().collect();
        let expected = format!("it is in use by process {}", first.id());
        assert!(ran.status == 255 && said.join(" ").contains(&expected), "{}", ran.stderr);
    }
    dir.write("over", "");
    assert!(first.wait().expect("own child").success());
    assert!(!dir.path("ran").exists());
    assert_eq!(dir.read("log").lines().count(), 2);
}

#[test]
fn a_file_that_is_not_a_joblog_is_left_alone() {
    let dir = TestDir::new();
    dir.write("log", "my diary\n");
    let ran = dir.run(&["--joblog", "log", "--resume", "--", "echo", ":::", "a"]);
    assert_eq!(ran.status, 255);
    assert!(ran.stderr.contains("line 1 is not a joblog line"), "{}", ran.stderr);
    assert_eq!(dir.read("log"), "my diary\n");
}

#[test]
fn memory_does_not_grow_with_the_list() {
    let dir = TestDir::new();
    let peak = |jobs: usize| {
        let list = numbered(jobs, |number| format!("/bin/true {number}\n"));
        // The last job looks at the run.
        let ran = dir.run_with(&["-"], (list + "grep VmHWM /proc/$PPID/status | tee\n").as_bytes());
        let peak = ran.stdout.split_whitespace().nth(1).map(str::parse::<u64>);
        peak.expect("a number").expect("a number")
    };
    let (few, many) = (peak(100), peak(800));
    assert!(many < few + (1 << 10), "{few} KiB for 100 jobs, {many} KiB for 800");
}

#[test]
fn a_list_that_has_grown_is_resumed() {
    let dir = TestDir::new();
    dir.run(&["--joblog", "log", "--", "echo", ":::", "b", "c"]);
    let again = ["-k", "--joblog", "log", "--resume", "--", "echo"];
    let ran = dir.run(&[&again[..], &[":::", "a", "b", "c", "d"]].concat());
    assert_eq!((ran.stdout.as_str(), ran.status), ("a\nd\n", 0), "{}", ran.stderr);
    let ran = dir.run_with(&again, b"0\na\nb\nc\nd\n");
    assert_eq!((ran.stdout.as_str(), ran.status), ("0\n", 0), "{}", ran.stderr);
}

#[test]
fn failed_commands_run_again_from_the_log_alone() {
    let dir = TestDir::new();
    let job = "echo {} \"a\n\" | cat; test -e fixed || exit {}";
    let first = dir.run(&["--joblog", "log", "--shell", "--", job, ":::", "0", "1", "2"]);
    assert_eq!(first.status, 2);
    dir.write("fixed", "");
    let again = ["-k", "--joblog", "log", "--retry-failed"];
    let ran = dir.run(&again);
    assert_eq!((ran.stdout.as_str(), ran.status), ("1 a\n\n2 a\n\n", 0), "{}", ran.stderr);
    assert_eq!(dir.run(&again).stdout, "");
    assert_eq!(dir.run(&["--joblog", "log", "--retry-failed", "--", "echo"]).status, 255);
}
