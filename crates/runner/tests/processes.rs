//! Tests with real processes, in programs that panic or leak descriptors.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use brigade_runner::{Client, Event, Job, Runner, Stopper, Supply};
use brigade_testkit::processes::{is_alive, this_thread};
use brigade_testkit::{BOUND, wait_until};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

fn until_dead(pids: &str) {
    let is_left = |pid: &str| pid.parse().is_ok_and(is_alive);
    wait_until("all processes are gone", BOUND, || !pids.split_whitespace().any(is_left));
}

/// Returns a job with one child in its group and one that has left it. It writes down the ids of
/// all three.
fn family(folder: &std::path::Path) -> Job {
    let script = "echo $$ >> pids; sleep 600 & echo $! >> pids
        setsid sh -c 'echo $$ >> pids; touch ready; exec sleep 600' & wait";
    Job::shell(script).folder(folder)
}

#[test]
fn a_panic_in_the_closure_leaves_no_process() {
    let folder = tempfile::tempdir().expect("a directory");
    let runner = Runner::builder().unpinned().tick(Duration::from_millis(5)).build();
    let run = || {
        runner.expect("valid").run([family(folder.path())], |_| {
            assert!(!folder.path().join("ready").exists(), "as planned");
        })
    };
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    let pids = fs::read_to_string(folder.path().join("pids")).expect("written");
    assert_eq!(pids.lines().count(), 3);
    until_dead(&pids);
}

#[test]
fn a_panic_in_the_client_leaves_no_process() {
    struct Panics(Option<Job>, std::path::PathBuf, Stopper);
    impl Client for Panics {
        fn next(&mut self) -> Supply {
            match self.0.take() {
                Some(job) => Supply::Job(Box::new(job)),
                None if self.1.exists() => panic!("as planned"),
                None => Supply::Later,
            }
        }

        fn event(&mut self, _: Event) {
            self.2.wake();
        }
    }
    let folder = tempfile::tempdir().expect("a directory");
    let runner =
        Runner::builder().unpinned().jobs(2).tick(Duration::from_millis(5)).build().expect("valid");
    let stopper = runner.stopper();
    let mut client = Panics(Some(family(folder.path())), folder.path().join("ready"), stopper);
    let run = || runner.run_client(&mut client);
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    until_dead(&fs::read_to_string(folder.path().join("pids")).expect("written"));
}

#[test]
fn a_list_with_a_job_that_never_fits_does_not_start() {
    let jobs = [Job::new("true"), Job::new("true").arg("x").cores(4096)];
    let mut events = 0;
    let result = Runner::builder().build().expect("cores").run(jobs, |_| events += 1);
    let error = result.expect_err("too wide");
    assert!(error.to_string().starts_with("job 2 (true x) can never run"), "{error}");
    assert_eq!(events, 0);
}

#[test]
fn copies_of_a_jobs_descriptors_do_not_keep_the_run_busy() {
    let own = pidfd_open(getpid(), PidfdFlags::empty()).expect("own process");
    let mut copies: Vec<OwnedFd> = Vec::new();
    // A busy loop is never asleep.
    let status = format!("/proc/{}/task/{}/status", std::process::id(), this_thread());
    let looks = format!("for i in $(seq 100); do grep '^State:.S' {status}; done");
    let jobs = [Job::new("echo"), Job::shell(format!("test $({looks} | wc -l) -gt 50"))];
    let runner = Runner::builder().unpinned().jobs(1).build().expect("valid");
    let summary = runner.run(jobs, |event| {
        if let Event::Started { number: 1, .. } = event {
            // The descriptors that a fork of this process would have.
            let folder = fs::read_dir("/proc/self/fd").expect("proc");
            let numbers = folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
            let numbers: Vec<i32> = numbers.collect();
            copies.extend(numbers.into_iter().filter_map(|number| {
                pidfd_getfd(own.as_fd(), number, PidfdGetfdFlags::empty()).ok()
            }));
        }
    });
    assert_eq!(summary.expect("possible").succeeded, 2, "it was busy with nothing to do");
}
