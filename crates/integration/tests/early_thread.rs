//! Programs in which a thread runs before `main`, as some allocators, sanitizers and preloaded
//! libraries start one.
//!
//! This test program is one, as a host and as a worker, and so has no other tests.

use std::fs::{self, File};
use std::process::Command;
use std::thread;

use brigade::{Link, Pool, Sandbox, Start, TaskErrorKind};
use brigade_integration::{Log, builder};
use brigade_sys::before_main;
use brigade_testkit::faults::{aborts, sleeps};
use brigade_testkit::outcome;

before_main!(begin);

fn begin() {
    thread::spawn(thread::park);
    brigade::init();
}

fn pool() -> Pool {
    builder(1).link(Link::Ring).build().unwrap()
}

fn threads((): ()) -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn a_pool_works() {
    assert!(outcome(pool().submit(threads, ()).unwrap()).unwrap() >= 2, "no early thread");
}

#[test]
fn a_child_of_a_task_is_not_a_worker() {
    fn lists_its_tests((): ()) -> String {
        let output = Command::new("/proc/self/exe").arg("--list").output().unwrap();
        format!("{output:?}")
    }
    let output = outcome(pool().submit(lists_its_tests, ()).unwrap()).unwrap();
    assert!(output.contains("a_child_of_a_task_is_not_a_worker"), "{output}");
}

#[test]
fn a_task_may_build_a_pool() {
    fn nests((): ()) -> u64 {
        outcome(pool().submit(sleeps, 1).unwrap()).unwrap()
    }
    assert_eq!(outcome(pool().submit(nests, ()).unwrap()).unwrap(), 1);
}

#[test]
fn a_child_of_a_task_inherits_nothing_from_the_host() {
    fn started_by_a_task((): ()) -> Vec<String> {
        let output = Command::new("ls").arg("-l").arg("/proc/self/fd").output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }
    let file = File::open("/proc/self/environ").unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let open = outcome(pool().submit(started_by_a_task, ()).unwrap()).unwrap();
    assert!(!open.iter().any(|line| line.contains("environ")), "{open:#?}");
}

#[test]
fn ipc_reports_that_it_needs_a_single_thread() {
    let pool = builder(1).link(Link::Ipc).build().unwrap();
    let error = outcome(pool.submit(sleeps, 1).unwrap()).unwrap_err();
    let TaskErrorKind::PoolBroken { reason } = error.kind() else { panic!("{error:?}") };
    for part in ["2 threads", "Link::Ring"] {
        assert!(reason.contains(part), "{part:?} is missing in {reason:?}");
    }
}

#[test]
fn a_sandbox_reports_that_it_needs_a_single_thread() {
    let pool = builder(1).link(Link::Ring).sandbox(Sandbox::strict()).build().unwrap();
    let error = outcome(pool.submit(sleeps, 1).unwrap()).unwrap_err();
    let TaskErrorKind::PoolBroken { reason } = error.kind() else { panic!("{error:?}") };
    assert!(reason.contains("it has 2 threads"), "{reason:?}");
}

#[test]
fn where_forking_is_not_safe_workers_are_executed() {
    let log = Log::get();
    let pool = pool();
    for _ in 0..4 {
        assert!(outcome(pool.submit(aborts, ()).unwrap()).is_err());
    }
    log.wait_for_line(&["WARN", "workers are executed, not forked", "2 threads before `init`"]);
    let pool = builder(1).link(Link::Ring).start(Start::Fork).build().unwrap();
    let error = outcome(pool.submit(threads, ()).unwrap()).unwrap_err();
    assert!(error.to_string().contains("workers cannot be forked: it has 2 threads"), "{error}");
}
