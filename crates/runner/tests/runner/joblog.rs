//! Tests of the log of a run that does not come to its end, and of resuming.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::collections::HashMap;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use brigade_runner::{Event, Job, Joblog, ResumeError, Runner, Summary};
use brigade_testkit::{BOUND, wait_until};

/// Names the directory of the run in a process that is killed.
const FOLDER: &str = "BRIGADE_RUNNER_TEST_FOLDER";

/// Number of jobs that end before the kill.
const EARLY: usize = 30;

fn runner() -> Runner {
    Runner::builder().unpinned().jobs(2).build().expect("valid")
}

/// Returns jobs that note in a file that they ran. The later ones wait for the file `killed`.
fn jobs(count: u32, folder: &Path) -> impl Iterator<Item = Job> {
    let job = |number| {
        format!(
            "echo {number} >> runs; test {number} -le {EARLY} || \
             until test -e killed; do sleep 0.01; done"
        )
    };
    (1..=count).map(move |number| Job::shell(job(number)).folder(folder))
}

/// Runs what an earlier run has left, and passes each event to `on_event` after it was logged.
fn resume(jobs: impl Iterator<Item = Job>, folder: &Path, on_event: impl Fn(&Event)) -> Summary {
    let (mut joblog, resume) = Joblog::resume(folder.join("log")).expect("a log");
    let remaining = resume.remaining(jobs).expect("the same list");
    let logged = |event| {
        if let Event::Finished(outcome) = &event {
            joblog.write(outcome).expect("disk");
        }
        on_event(&event);
    };
    runner().run(remaining, logged).expect("possible")
}

/// Returns how many successes the log records for each job.
fn successes(folder: &Path) -> HashMap<u64, usize> {
    let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
    let mut successes = HashMap::new();
    for line in log.lines().skip(1).filter(|line| line.contains("\t0\t0\t")) {
        let number = line.split('\t').next().expect("a column").parse().expect("a number");
        *successes.entry(number).or_default() += 1;
    }
    successes
}

#[test]
fn a_log_that_only_the_children_of_a_killed_run_hold_is_awaited() {
    let folder = tempfile::tempdir().expect("a directory");
    let log = folder.path().join("log");
    // `flock` takes the lock and ends; `cat` has inherited the file.
    let mut child = Command::new("sh")
        .args(["-c", "exec 9>> \"$0\" && flock -n 9 && echo locked && exec cat"])
        .arg(&log)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    output.read_line(&mut line).expect("its output");
    assert_eq!(line, "locked\n");
    thread::scope(|scope| {
        let opening = scope.spawn(|| Joblog::create(&log, None).map(drop));
        drop(child.stdin.take());
        opening.join().expect("no panic").expect("a log that is free again");
    });
    assert!(child.wait().expect("its end").success());
}

#[test]
fn a_killed_run_is_resumed_without_repeating_successes() {
    const JOBS: u32 = 300;
    if let Some(folder) = env::var_os(FOLDER) {
        let folder = Path::new(&folder);
        resume(jobs(JOBS, folder), folder, |_| ());
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let folder = folder.path();
    let mut killed = Command::new(env::current_exe().expect("this program"))
        .args(["joblog::a_killed_run_is_resumed_without_repeating_successes", "--exact"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("the process starts");
    wait_until("some jobs", BOUND, || successes(folder).len() == EARLY);
    killed.kill().expect("own child");
    killed.wait().expect("own child");
    fs::write(folder.join("killed"), "").expect("disk");
    let mut log = OpenOptions::new().append(true).open(folder.join("log")).expect("a log");
    log.write_all(b"299\t:\t1795").expect("disk");
    drop(log);
    let summary = resume(jobs(JOBS, folder), folder, |_| ());
    assert_eq!(summary.succeeded, u64::from(JOBS) - EARLY as u64);
    let after = successes(folder);
    assert_eq!(after.len(), JOBS as usize);
    assert!(after.values().all(|count| *count == 1), "{after:?}");
    // Only the jobs that ran during the kill ran again.
    let runs = fs::read_to_string(folder.join("runs")).expect("written").lines().count();
    assert!((JOBS as usize..=JOBS as usize + 2).contains(&runs), "{runs}");
}

#[test]
fn a_run_that_panics_is_resumed_where_it_ended() {
    let folder = tempfile::tempdir().expect("a directory");
    let folder = folder.path();
    let panics = |event: &Event| {
        let is_third = matches!(event, Event::Finished(_)) && successes(folder).len() == 3;
        assert!(!is_third, "as planned");
    };
    let run = || resume(jobs(10, folder), folder, panics);
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    assert_eq!(successes(folder).len(), 3);
    assert_eq!(resume(jobs(10, folder), folder, |_| ()).succeeded, 7);
    assert_eq!(resume(jobs(10, folder), folder, |_| ()).succeeded, 0);
}

#[test]
fn failures_run_again_and_a_changed_list_does_not() {
    let folder = tempfile::tempdir().expect("a directory");
    let folder = folder.path();
    let exits = |codes: [i32; 3]| {
        codes
            .into_iter()
            .map(|code| Job::shell(format!("test -e fixed || exit {code}")).folder(folder))
    };
    let first = resume(exits([0, 1, 2]), folder, |_| ());
    assert_eq!((first.succeeded, first.failed), (1, 2));
    fs::write(folder.join("fixed"), "").expect("disk");
    let (log, done) = Joblog::resume(folder.join("log")).expect("a log");
    let changed = done.remaining(exits([5, 1, 2]));
    assert!(matches!(changed, Err(ResumeError::Changed { number: 1 })), "{changed:?}");
    drop(log);
    let second = resume(exits([0, 1, 2]), folder, |_| ());
    assert_eq!((second.succeeded, second.failed), (2, 0));
}

#[test]
fn a_log_has_one_writer_and_no_line_of_a_job_that_never_started() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("log");
    let mut joblog = Joblog::create(&path, None)?;
    let error = Joblog::create(&path, None).expect_err("in use");
    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
    assert!(matches!(Joblog::resume(&path), Err(ResumeError::File(_))));
    let halt = "now,fail=1".parse().expect("valid");
    let runner = Runner::builder().unpinned().jobs(1).halt(halt).build().expect("valid");
    let jobs = ["exit 3", "true", "false"].map(Job::shell);
    for outcome in runner.run_all(jobs).expect("possible") {
        joblog.write(&outcome)?;
    }
    assert_eq!(fs::read_to_string(&path)?.lines().count(), 2);
    drop(joblog);
    // A new log begins with nothing.
    Joblog::create(&path, None)?;
    assert_eq!(fs::read_to_string(&path)?.lines().count(), 1);
    Ok(())
}

#[test]
fn a_failed_command_runs_again_with_the_same_bytes() {
    let folder = tempfile::tempdir().expect("disk");
    let argument = OsStr::from_bytes(b"a\xff\nb\tc");
    let job = Job::new("test").args([argument, "=".as_ref(), "x".as_ref()]);
    resume([job.clone()].into_iter(), folder.path(), |_| ());
    let failed = Joblog::failed(folder.path().join("log")).expect("a log");
    let line = Job::shell(job.command().to_line()).number(1);
    assert_eq!(format!("{failed:?}"), format!("{:?}", [line]));
}
