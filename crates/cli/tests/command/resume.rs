//! The joblog after a kill, and going on with it.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;

use crate::common::{Place, pieces, until};

/// How often each job stands in the log as a success.
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
fn what_was_killed_half_way_is_finished_with_one_success_a_job() {
    const JOBS: usize = 300;
    let place = Place::new();
    let list = pieces(JOBS, |number| format!("echo {number} >> runs\n"));
    place.write("list.txt", &list);
    let mut brigade = place.spawn(&["run", "--joblog", "log", "list.txt"]);
    until("a third of the jobs", || place.read("log").lines().count() > JOBS / 3);
    brigade.kill().expect("ours");
    brigade.wait().expect("ours");
    let before = successes(&place.read("log")).len();
    assert!(before < JOBS, "it was killed too late to tell anything");
    // As if the kill had cut the last line.
    let log = place.path("log");
    let mut file = OpenOptions::new().append(true).open(&log).expect("disk");
    file.write_all(b"299\t:\t1795").expect("disk");
    drop(file);
    let ran = place.run(&["--joblog", "log", "--resume", "list.txt"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let after = successes(&place.read("log"));
    assert_eq!(after.len(), JOBS);
    assert!(after.values().all(|count| *count == 1), "{after:?}");
    // Those that ran when the kill came ran again, and no other.
    let runs = place.read("runs").lines().count();
    assert!((JOBS..=JOBS + 64).contains(&runs), "{runs}");
}

#[test]
fn only_jobs_without_a_success_run_again() {
    let place = Place::new();
    let command = ["--", "sh", "-c", "echo {}; [ -e fixed ] || exit {}", ":::", "0", "1", "2"];
    let first = place.run(&[&["--joblog", "log"][..], &command].concat());
    assert_eq!(first.status, 2);
    place.write("fixed", "");
    for option in ["--resume", "--resume-failed"] {
        let again = place.run(&[&["-k", "--joblog", "log", option][..], &command].concat());
        let expected = if option == "--resume" { "1\n2\n" } else { "" };
        assert_eq!((again.stdout.as_str(), again.status), (expected, 0), "{option}");
    }
}

#[test]
fn a_list_that_has_changed_is_not_mistaken_for_the_old_one() {
    let place = Place::new();
    place.run(&["--joblog", "log", "--", "echo", ":::", "a", "b"]);
    let ran = place.run(&["--joblog", "log", "--resume", "--", "echo", ":::", "b", "c"]);
    assert_eq!(ran.status, 255);
    assert!(ran.stderr.contains("job 1 is not the one"), "{}", ran.stderr);
}

#[test]
fn a_job_in_other_surroundings_is_not_mistaken_for_the_old_one() {
    let place = Place::new();
    std::fs::create_dir(place.path("other")).expect("a folder");
    let job = |more: &str| format!("[[job]]\ncommand = ['sh', '-c', 'echo $SEED; cat']\n{more}\n");
    place.write("jobs.toml", job("env = { SEED = '1' }"));
    assert_eq!(place.run(&["--joblog", "log", "jobs.toml"]).status, 0);
    assert_eq!(place.run(&["--joblog", "log", "--resume", "jobs.toml"]).stdout, "");
    for other in ["env = { SEED = '2' }", "env = { SEED = '1' }\nfolder = 'other'", "input = 'x'"] {
        place.write("jobs.toml", job(other));
        let ran = place.run(&["--joblog", "log", "--resume", "jobs.toml"]);
        assert_eq!(ran.status, 255, "{other}");
        assert!(ran.stderr.contains("job 1 is not the one"), "{}", ran.stderr);
    }
}

#[test]
fn commands_with_a_slot_are_compared_as_well() {
    let place = Place::new();
    place.run(&["--joblog", "log", "--", "echo", "{%}", "{}", ":::", "a", "b"]);
    let again = ["--joblog", "log", "--resume", "-j1", "--", "echo", "{%}", "{}", ":::"];
    let with = |list: [&'static str; 2]| place.run(&[&again[..], &list[..]].concat());
    assert_eq!(with(["a", "b"]).status, 0);
    assert_eq!(with(["b", "c"]).status, 255);
}

#[test]
fn something_that_is_no_joblog_is_left_alone() {
    let place = Place::new();
    place.write("log", "my diary\n");
    let ran = place.run(&["--joblog", "log", "--resume", "--", "echo", ":::", "a"]);
    assert_eq!(ran.status, 255);
    assert!(ran.stderr.contains("line 1 is no line of a joblog"), "{}", ran.stderr);
    assert_eq!(place.read("log"), "my diary\n");
}

#[test]
fn memory_does_not_grow_with_the_list() {
    let place = Place::new();
    // A run within a run, as each tells the peak memory of its jobs.
    let brigade = env!("CARGO_BIN_EXE_brigade");
    place.write(
        "jobs.toml",
        format!("[[job]]\ncommand = ['{brigade}', 'run', '-']\nstdin = 'list'\n"),
    );
    let peak = |jobs: usize| {
        place.write("list", pieces(jobs, |number| format!("/bin/true {number}\n")));
        let ran = place.run(&["--json", "jobs.toml"]);
        let last: serde_json::Value =
            serde_json::from_str(ran.stdout.lines().last().expect("some")).expect("JSON");
        assert_eq!(last["success"], true, "{last}");
        last["peak_memory"].as_u64().expect("a number")
    };
    let (few, many) = (peak(200), peak(3000));
    assert!(many < few + (2 << 20), "{few} bytes for 200 jobs, {many} for 3000");
}
