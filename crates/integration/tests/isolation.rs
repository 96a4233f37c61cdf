//! What a worker gets from its host, and what it does not.

use std::io::Read;
use std::os::fd::AsFd;
use std::process::Command;

use brigade_integration::pool;
use brigade_testkit::{BOUND, outcome, processes, wait_until};

brigade::init_for_tests!();

/// What the open descriptors of a process lead to, beyond the standard streams.
fn descriptors(pid: &str) -> Vec<String> {
    let folder = format!("/proc/{pid}/fd");
    let entries = std::fs::read_dir(&folder).unwrap().flatten();
    entries
        .filter(|entry| !matches!(entry.file_name().to_str(), Some("0" | "1" | "2")))
        // The look's own descriptor is closed by now and leads nowhere.
        .filter_map(|entry| Some(std::fs::read_link(entry.path()).ok()?.display().to_string()))
        .collect()
}

/// What a program sees that is started here and now.
fn descriptors_of_a_child() -> String {
    let output = Command::new("/bin/sh").args(["-c", "echo /proc/self/fd/*"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The shell expands the pattern itself, with one more descriptor for that.
const STANDARD_STREAMS: [&str; 2] = [
    "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2",
    "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3",
];

#[test]
fn a_worker_leads_a_process_group_of_its_own() {
    let pool = pool(2);
    pool.warm_up().unwrap();
    for pid in pool.worker_pids() {
        assert_eq!(
            processes::group_of(pid),
            Some(pid),
            "so a Ctrl-C at the terminal does not reach it"
        );
    }
}

#[test]
fn a_worker_inherits_no_descriptor_of_the_host() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().canonicalize().unwrap().display().to_string();
    brigade_sys::descriptors::keep_on_exec(file.as_fd()).unwrap();
    let kept = Command::new("/bin/sh").args(["-c", "ls -l /proc/self/fd"]).output().unwrap();
    assert!(
        String::from_utf8(kept.stdout).unwrap().contains(&path),
        "an ordinary child inherits it"
    );
    let pool = pool(1);
    let found = outcome(pool.submit(|(): ()| descriptors("self"), ()).unwrap()).unwrap();
    assert!(!found.contains(&path), "{found:?}");
}

#[test]
fn a_worker_holds_as_few_descriptors_after_many_tasks_as_after_one() {
    let pool = pool(1);
    let count = || outcome(pool.submit(|(): ()| descriptors("self").len(), ()).unwrap()).unwrap();
    let first = count();
    assert_eq!(pool.map(|bytes: Vec<u8>| bytes, vec![vec![1; 200_000]; 50]).flatten().count(), 50);
    assert_eq!(count(), first);
}

#[test]
fn what_a_task_starts_inherits_the_standard_streams_only() {
    let pool = pool(1);
    let found = outcome(pool.submit(|(): ()| descriptors_of_a_child(), ()).unwrap()).unwrap();
    assert!(STANDARD_STREAMS.contains(&found.as_str()), "{found}");
}

#[test]
fn what_the_host_starts_inherits_nothing_of_the_pool() {
    let before = descriptors_of_a_child();
    let pool = pool(2);
    pool.warm_up().unwrap();
    assert_eq!(descriptors_of_a_child(), before);
}

#[test]
fn a_task_that_reads_its_standard_input_finds_nothing_there() {
    let pool = pool(1);
    let read = |(): ()| std::io::stdin().read(&mut [0; 16]).unwrap();
    assert_eq!(outcome(pool.submit(read, ()).unwrap()).unwrap(), 0);
}

#[test]
fn a_worker_is_known_by_a_name_of_its_own() {
    let pool = pool(1);
    pool.warm_up().unwrap();
    let pid = pool.worker_pids()[0];
    wait_until("the worker's name", BOUND, || {
        std::fs::read_to_string(format!("/proc/{pid}/comm"))
            .is_ok_and(|name| name.contains("brigade"))
    });
}

#[test]
fn a_pool_that_is_idle_does_nothing() {
    // Switches of context that a thread made by itself: each is the end of a wait.
    fn switches(pid: u32) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        tasks
            .filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok())
            .filter_map(|text| {
                let line = text.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?;
                line.split_whitespace().nth(1)?.parse::<u64>().ok()
            })
            .sum()
    }
    let pool = pool(2);
    pool.warm_up().unwrap();
    outcome(pool.submit(|(): ()| (), ()).unwrap()).unwrap();
    let workers = || pool.worker_pids().into_iter().map(switches).sum::<u64>();
    // Until everybody has fallen asleep.
    let mut before = workers();
    wait_until("the workers to be idle for a while", BOUND, || {
        brigade_testkit::pause(std::time::Duration::from_millis(300));
        let now = workers();
        std::mem::replace(&mut before, now) == now
    });
}
