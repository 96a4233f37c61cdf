//! Resources that a worker inherits from its host, and those that it must not inherit.

use std::io::Read;
use std::process::Command;

use brigade_integration::pool;
use brigade_testkit::{BOUND, outcome, processes, wait_until};
use rustix::io::{FdFlags, fcntl_setfd};

/// Returns the targets of a process's open descriptors, without the standard streams.
fn descriptors(pid: &str) -> Vec<String> {
    let folder = format!("/proc/{pid}/fd");
    let entries = std::fs::read_dir(&folder).unwrap().flatten();
    entries
        .filter(|entry| !matches!(entry.file_name().to_str(), Some("0" | "1" | "2")))
        // The descriptor used by this very look is closed by now and leads nowhere.
        .filter_map(|entry| Some(std::fs::read_link(entry.path()).ok()?.display().to_string()))
        .collect()
}

/// Returns the descriptors seen by a program that is started here and now.
fn descriptors_of_a_child() -> String {
    let output = Command::new("/bin/sh").args(["-c", "echo /proc/self/fd/*"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The shell expands the pattern itself, and uses one more descriptor for that.
const STANDARD_STREAMS: [&str; 2] = [
    "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2",
    "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3",
];

#[test]
fn a_worker_leads_its_own_process_group() {
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
fn a_worker_inherits_no_descriptor_from_the_host() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().canonicalize().unwrap().display().to_string();
    fcntl_setfd(&file, FdFlags::empty()).unwrap();
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
fn a_worker_accumulates_no_descriptors() {
    let pool = pool(1);
    let count = || outcome(pool.submit(|(): ()| descriptors("self").len(), ()).unwrap()).unwrap();
    let first = count();
    assert_eq!(pool.map(|bytes: Vec<u8>| bytes, vec![vec![1; 200_000]; 50]).flatten().count(), 50);
    assert_eq!(count(), first);
}

#[test]
fn a_child_of_a_task_inherits_only_the_standard_streams() {
    let pool = pool(1);
    let found = outcome(pool.submit(|(): ()| descriptors_of_a_child(), ()).unwrap()).unwrap();
    assert!(STANDARD_STREAMS.contains(&found.as_str()), "{found}");
}

#[test]
fn a_child_of_the_host_inherits_nothing_from_the_pool() {
    let before = descriptors_of_a_child();
    let pool = pool(2);
    pool.warm_up().unwrap();
    assert_eq!(descriptors_of_a_child(), before);
}

#[test]
fn standard_input_of_a_task_is_empty() {
    let pool = pool(1);
    let read = |(): ()| std::io::stdin().read(&mut [0; 16]).unwrap();
    assert_eq!(outcome(pool.submit(read, ()).unwrap()).unwrap(), 0);
}

#[test]
fn a_worker_has_its_own_process_name() {
    let pool = pool(1);
    pool.warm_up().unwrap();
    let pid = pool.worker_pids()[0];
    wait_until("the worker's name", BOUND, || {
        std::fs::read_to_string(format!("/proc/{pid}/comm"))
            .is_ok_and(|name| name.contains("brigade"))
    });
}

#[test]
fn an_idle_pool_does_nothing() {
    // Voluntary context switches of threads with such a name: each is the end of a wait.
    fn switches(pid: u32, name: &str) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        tasks
            .filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok())
            .filter(|text| text.starts_with(&format!("Name:\t{name}")))
            .filter_map(|text| {
                let line = text.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?;
                line.split_whitespace().nth(1)?.parse::<u64>().ok()
            })
            .sum()
    }
    let pool = pool(2);
    pool.warm_up().unwrap();
    outcome(pool.submit(|(): ()| (), ()).unwrap()).unwrap();
    assert!(switches(std::process::id(), "brigade-") > 0, "threads of the pool have other names");
    let all = || {
        let workers = pool.worker_pids().into_iter().map(|pid| switches(pid, ""));
        switches(std::process::id(), "brigade-") + workers.sum::<u64>()
    };
    // Until all threads have fallen asleep.
    let mut before = all();
    wait_until("pool and workers to be idle for a while", BOUND, || {
        brigade_testkit::pause(std::time::Duration::from_millis(300));
        let now = all();
        std::mem::replace(&mut before, now) == now
    });
}
