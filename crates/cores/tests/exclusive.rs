//! Several processes on one machine: they never lease the same core, and a death gives cores back.
//!
//! A child is this executable again, with the arguments that run [`child`] alone and its task in the environment.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use brigade_cores::{BuildError, CorePool, CoreRequest, CpuSet, ReserveError, Topology};
use brigade_testkit::{BOUND, Random, wait_until};

const TASK: &str = "BRIGADE_CORES_TEST_TASK";
const FOLDER: &str = "BRIGADE_CORES_TEST_FOLDER";

fn pool(folder: &Path) -> CorePool {
    // The cpus of a machine that need not be this one: nobody is pinned here.
    let topology = Topology::flat((0..64).collect());
    CorePool::builder().topology(topology).exclusive_in(folder.join("locks")).build().unwrap()
}

fn start(task: &str, folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(TASK, task)
        .env(FOLDER, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The line that begins with `word`, past what the test harness prints.
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

/// Not a test of its own: what the children do. Without a task it does nothing.
#[test]
fn child() {
    let (Some(task), Some(folder)) = (std::env::var_os(TASK), std::env::var_os(FOLDER)) else {
        return;
    };
    let folder = Path::new(&folder);
    match task.to_str().unwrap() {
        "hold" => hold(folder),
        seed => contend(folder, seed.parse().unwrap()),
    }
}

/// Leases 60 cores, and gives them back when its input says so.
fn hold(folder: &Path) {
    let pool = pool(folder);
    let lease = pool.reserve(CoreRequest::new(60)).unwrap();
    let mut output = std::io::stdout();
    writeln!(output, "lease {lease}").unwrap();
    let mut lines = std::io::stdin().lines();
    lines.next();
    drop(lease);
    // Process and pool live on, so that it is not the end of the file that gives them back.
    lines.next();
    drop(pool);
}

/// Leases and gives back at random. A file marks each core while it is leased: making one that is there fails.
fn contend(folder: &Path, seed: u64) {
    let pool = pool(folder);
    let mut random = Random::new(seed);
    for _ in 0..200 {
        let count = 1 + usize::try_from(random.within(0..40)).unwrap();
        let Ok(lease) = pool.reserve_timeout(CoreRequest::new(count), Duration::from_secs(60))
        else {
            panic!("others do not hold {count} cores for so long");
        };
        let mark = |cpu: u32| folder.join(format!("cpu-{cpu}"));
        for cpu in lease.cores().iter() {
            OpenOptions::new().write(true).create_new(true).open(mark(cpu)).expect("leased twice");
        }
        for cpu in lease.cores().iter() {
            fs::remove_file(mark(cpu)).unwrap();
        }
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
fn a_process_killed_by_sigkill_gives_its_cores_back_to_those_who_wait() {
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
        wait_until("a place in the queue", BOUND, || pool.waiting() == 1);
        // SIGKILL.
        child.kill().unwrap();
        let lease = wide.join().unwrap().unwrap();
        assert_eq!(lease.cores().len(), 60);
        child.wait().unwrap();
    }
}

#[test]
fn cores_that_another_process_gives_back_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = start("hold", folder.path());
    line_of(&mut child, "lease ");
    let pool = pool(folder.path());
    let wide = {
        let pool = pool.clone();
        thread::spawn(move || pool.reserve_timeout(CoreRequest::new(64), BOUND))
    };
    wait_until("a place in the queue", BOUND, || pool.waiting() == 1);
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
fn a_folder_of_others_and_a_deleted_file_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let pool = pool(folder.path());
    fs::remove_file(pool.lock_file().unwrap()).unwrap();
    assert!(matches!(pool.reserve(CoreRequest::new(1)), Err(ReserveError::Lock(_))));

    let locks = folder.path().join("locks");
    fs::set_permissions(&locks, fs::Permissions::from_mode(0o777)).unwrap();
    let open = CorePool::builder().exclusive_in(locks).build();
    assert!(matches!(open, Err(BuildError::LockFile { .. })));
}
