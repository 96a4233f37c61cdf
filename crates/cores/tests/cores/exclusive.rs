//! Several processes on one machine: they never lease the same core, and a death returns cores.
//!
//! A child is this executable again, with arguments that run only [`child`], and with its task in
//! the environment.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use brigade_cores::{BuildError, CoreLease, CorePool, CoreRequest, CpuSet, ReserveError, Topology};
use brigade_testkit::{BOUND, Random, Side, copy_process, repetitions, wait_until};

const TASK: &str = "BRIGADE_CORES_TEST_TASK";
const FOLDER: &str = "BRIGADE_CORES_TEST_FOLDER";

fn pool(folder: &Path) -> CorePool {
    // The cpus need not be those of this machine: no thread is pinned here.
    let topology = Topology::flat((0..64).collect());
    CorePool::builder().topology(topology).exclusive_in(folder.join("locks")).build().unwrap()
}

fn start(task: &str, folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "exclusive::child", "--nocapture"])
        .env(TASK, task)
        .env(FOLDER, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns the rest of the line after `word`, past the output of the test harness.
fn line_of(child: &mut Child, word: &str) -> String {
    let mut output = BufReader::new(child.stdout.as_mut().unwrap());
    let mut line = String::new();
    loop {
        line.clear();
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "the child ended early");
        // The harness does not end its own line.
        if let Some((_, rest)) = line.split_once(word) {
            return rest.trim().to_owned();
        }
    }
}

/// The body of the child processes, not a test. Without a task it does nothing.
#[test]
fn child() {
    let (Some(task), Some(folder)) = (std::env::var_os(TASK), std::env::var_os(FOLDER)) else {
        return;
    };
    let folder = Path::new(&folder);
    match task.to_str().unwrap() {
        "hold" => hold(folder),
        task => match task.strip_prefix("storm ") {
            Some(seed) => contend_without_file(folder, seed.parse().unwrap()),
            None => contend(folder, task.parse().unwrap()),
        },
    }
}

/// Leases 60 cores and returns them when told to on stdin.
fn hold(folder: &Path) {
    let pool = pool(folder);
    let lease = pool.reserve(CoreRequest::new(60)).unwrap();
    let mut output = std::io::stdout();
    writeln!(output, "lease {lease}").unwrap();
    let mut lines = std::io::stdin().lines();
    lines.next();
    drop(lease);
    // The process and the pool live on, so that it is not closing the file that returns the cores.
    lines.next();
    drop(pool);
}

/// Leases and returns cores at random.
fn contend(folder: &Path, seed: u64) {
    let pool = pool(folder);
    let mut random = Random::new(seed);
    for _ in 0..repetitions(200) {
        let count = 1 + usize::try_from(random.within(0..40)).unwrap();
        let Ok(lease) = pool.reserve_timeout(CoreRequest::new(count), Duration::from_secs(60))
        else {
            panic!("other processes held {count} cores for a minute");
        };
        mark(folder, &lease);
    }
}

/// The same while the lock file is deleted repeatedly: that may be an error, but never a wrong
/// lease.
fn contend_without_file(folder: &Path, seed: u64) {
    let topology = Topology::flat((0..64).collect());
    let builder = CorePool::builder().topology(topology).exclusive_in(folder.join("locks"));
    let mut random = Random::new(seed);
    let (wanted, mut leases) = (repetitions(100), 0);
    let start = Instant::now();
    while leases < wanted && start.elapsed() < BOUND {
        let Ok(pool) = builder.clone().build() else { continue };
        for _ in 0..10 {
            let count = 1 + usize::try_from(random.within(0..20)).unwrap();
            if let Ok(lease) = pool.try_reserve(CoreRequest::new(count)) {
                mark(folder, &lease);
                leases += 1;
            }
        }
    }
    assert!(leases >= wanted, "{leases} leases");
}

/// Creates a file for each core, which must not exist yet, and removes it again.
fn mark(folder: &Path, lease: &CoreLease) {
    let mark = |cpu: u32| folder.join(format!("cpu-{cpu}"));
    for cpu in lease.cores().iter() {
        OpenOptions::new().write(true).create_new(true).open(mark(cpu)).expect("leased twice");
    }
    for cpu in lease.cores().iter() {
        fs::remove_file(mark(cpu)).unwrap();
    }
}

#[test]
fn processes_never_hold_the_same_core() {
    let folder = tempfile::tempdir().unwrap();
    let children: Vec<Child> = (0..4).map(|seed| start(&seed.to_string(), folder.path())).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn cores_of_a_killed_process_go_to_waiting_requests() {
    let folder = tempfile::tempdir().unwrap();
    let pool = pool(folder.path());
    for _ in 0..5 {
        let mut child = start("hold", folder.path());
        let held: CpuSet = line_of(&mut child, "lease ").parse().unwrap();
        assert_eq!(held.len(), 60);
        let busy = pool.try_reserve(CoreRequest::new(8));
        assert!(matches!(busy, Err(ReserveError::Busy { .. })));
        let rest = pool.reserve(CoreRequest::new(4)).unwrap();
        assert!(!rest.cores().intersects(&held));
        let wide = {
            let pool = pool.clone();
            thread::spawn(move || pool.reserve_timeout(CoreRequest::new(60), BOUND))
        };
        wait_until("a waiting request", BOUND, || pool.waiting() == 1);
        // Sends SIGKILL.
        child.kill().unwrap();
        let lease = wide.join().unwrap().unwrap();
        assert_eq!(lease.cores().len(), 60);
        child.wait().unwrap();
    }
}

#[test]
fn cores_returned_by_another_process_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = start("hold", folder.path());
    line_of(&mut child, "lease ");
    let pool = pool(folder.path());
    let wide = {
        let pool = pool.clone();
        thread::spawn(move || pool.reserve_timeout(CoreRequest::new(64), BOUND))
    };
    wait_until("a waiting request", BOUND, || pool.waiting() == 1);
    let mut input = child.stdin.take().unwrap();
    writeln!(input).unwrap();
    assert_eq!(wide.join().unwrap().unwrap().cores().len(), 64);
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn two_pools_of_one_process_are_exclusive_too() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (pool(folder.path()), pool(folder.path()));
    let held = one.reserve(CoreRequest::new(10)).unwrap();
    assert_eq!(two.reserve(CoreRequest::new(10)).unwrap().to_string(), "10-19");
    drop(held);
    assert_eq!(two.reserve(CoreRequest::new(10)).unwrap().to_string(), "0-9");
}

#[test]
fn no_core_is_leased_while_a_deleted_lock_file_is_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (pool(folder.path()), pool(folder.path()));
    let file = one.lock_file().unwrap().to_owned();
    let refused = |pool: &CorePool| {
        let refused = pool.try_reserve(CoreRequest::new(60));
        assert!(matches!(refused, Err(ReserveError::Lock(_) | ReserveError::Busy { .. })));
        let refused = pool.try_reserve(CoreRequest::new(4));
        assert!(matches!(refused, Err(ReserveError::Lock(_))), "{refused:?}");
    };
    for _ in 0..3 {
        let lease = one.reserve(CoreRequest::new(60)).unwrap();
        fs::remove_file(&file).unwrap();
        refused(&one);
        refused(&two);
        let topology = Topology::flat((0..64).collect());
        let builder = CorePool::builder().topology(topology);
        let third = builder.exclusive_in(file.parent().unwrap()).build();
        assert!(matches!(third, Err(BuildError::LockFile { .. })));
        assert!(!file.exists());
        drop(lease);
        // Everything works as before, with a new file.
        let lease = two.reserve(CoreRequest::new(60)).unwrap();
        assert_eq!(one.reserve(CoreRequest::new(4)).unwrap().to_string(), "60-63");
        drop(lease);
    }
    // A renamed file is noticed at the next lease.
    let lease = one.reserve(CoreRequest::new(1)).unwrap();
    fs::rename(&file, folder.path().join("elsewhere")).unwrap();
    refused(&one);
    drop(lease);
    assert!(one.reserve(CoreRequest::new(64)).is_ok());
}

#[test]
fn waiting_requests_survive_the_deletion_of_the_lock_file() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (pool(folder.path()), pool(folder.path()));
    let lease = one.reserve(CoreRequest::new(60)).unwrap();
    let mut tickets = [(); 4].map(|()| two.reserve_later(CoreRequest::new(64), || {}).unwrap());
    fs::remove_file(one.lock_file().unwrap()).unwrap();
    let mut own = one.reserve_later(CoreRequest::new(64), || {}).unwrap();
    drop(lease);
    // There is no order between pools.
    thread::scope(|scope| {
        scope.spawn(|| drop(own.wait_timeout(BOUND).unwrap()));
        for ticket in &mut tickets {
            drop(ticket.wait_timeout(BOUND).unwrap());
        }
    });
}

#[test]
fn deleting_the_lock_file_repeatedly_never_leases_a_core_twice() {
    let folder = tempfile::tempdir().unwrap();
    let file = pool(folder.path()).lock_file().unwrap().to_owned();
    let mut children: Vec<Child> =
        (0..4).map(|seed| start(&format!("storm {seed}"), folder.path())).collect();
    wait_until("the end of all children", BOUND, || {
        let _ = fs::remove_file(&file);
        children.iter_mut().all(|child| child.try_wait().unwrap().is_some())
    });
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn a_folder_that_is_open_to_others_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let locks = folder.path().join("locks");
    fs::create_dir(&locks).unwrap();
    fs::set_permissions(&locks, fs::Permissions::from_mode(0o777)).unwrap();
    let open = CorePool::builder().exclusive_in(locks).build();
    assert!(matches!(open, Err(BuildError::LockFile { .. })));
}

#[test]
fn a_lease_that_a_fork_drops_stays_with_the_original() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (pool(folder.path()), pool(folder.path()));
    let lease = ours.reserve(CoreRequest::new(64)).unwrap();
    let copy = match copy_process() {
        Side::Original(copy) => copy,
        Side::Copy(copy) => copy.end_after(|| drop(lease)),
    };
    copy.assert_success();
    assert!(theirs.try_reserve(CoreRequest::new(1)).is_err(), "the fork has returned the cores");
    drop(lease);
    assert!(theirs.try_reserve(CoreRequest::new(1)).is_ok());
}
