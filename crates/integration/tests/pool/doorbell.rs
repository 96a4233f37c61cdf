//! A task that abuses the descriptors of its worker costs no other task its outcome, and no file of
//! its own a byte.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use brigade::{Link, Shutdown};
use brigade_integration::{builder, pool, worker_died};
use brigade_testkit::{BOUND, Gate, Watchdog, outcome, pass};
use brigade_testkit_sys::misdeeds;

/// Descriptor numbers, more than a worker has.
const NUMBERS: std::ops::Range<i32> = 3..100;

fn square(number: u64) -> u64 {
    number * number
}

/// Returns all open files of this process except the standard streams.
fn open_files() -> Vec<OwnedFd> {
    NUMBERS.filter_map(|number| misdeeds::duplicate(number).ok()).collect()
}

/// Closes everything, then opens files that it keeps.
fn closes_and_opens(folder: PathBuf) -> u32 {
    NUMBERS.for_each(misdeeds::close);
    for number in 0..20 {
        let mut file = File::create(folder.join(number.to_string())).expect("a file");
        file.write_all(b"mine").expect("room");
        std::mem::forget(file);
    }
    std::process::id()
}

#[test]
fn a_file_that_takes_a_doorbells_number_is_not_written_to() {
    let _watchdog = Watchdog::new("a task that closes and opens", 2 * BOUND);
    let pool = pool(1);
    for _ in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let handle = pool.submit(closes_and_opens, folder.path().to_owned()).unwrap();
        // Either the outcome is there and nobody rings for it, or the worker reports that it cannot
        // ring.
        if let Err(error) = outcome(handle) {
            assert!(error.is_worker_death(), "{error:?}");
        }
        assert_eq!(outcome(pool.submit(square, 3).unwrap()).unwrap(), 9);
        for file in fs::read_dir(folder.path()).unwrap() {
            assert_eq!(fs::read(file.unwrap().path()).unwrap(), b"mine");
        }
    }
}

#[test]
fn blocking_descriptors_of_a_task_block_nobody_else() {
    fn makes_blocking((): ()) {
        for file in open_files() {
            rustix::fs::fcntl_setfl(file, rustix::fs::OFlags::empty()).expect("an open file");
        }
    }
    let _watchdog = Watchdog::new("a task that makes descriptors blocking", 2 * BOUND);
    let pool = pool(2);
    pool.warm_up().unwrap();
    let gate = Gate::new();
    let mut held = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    outcome(pool.submit(makes_blocking, ()).unwrap()).unwrap();
    for _ in 0..3 {
        let begin = Instant::now();
        assert!(held.wait_timeout(Duration::from_millis(50)).is_none());
        assert!(begin.elapsed() < BOUND / 4, "the wait took {:?}", begin.elapsed());
    }
    gate.open();
    outcome(held).unwrap();
}

#[test]
fn a_task_that_reads_its_descriptors_steals_no_wake_up() {
    fn reads_everything((): ()) {
        let mut files: Vec<File> = open_files().into_iter().map(File::from).collect();
        for file in &files {
            rustix::fs::fcntl_setfl(file, rustix::fs::OFlags::NONBLOCK).expect("an open file");
        }
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(1) {
            for file in &mut files {
                let _ = file.read(&mut [0; 8]);
            }
        }
    }
    let _watchdog = Watchdog::new("a task that reads everything", 3 * BOUND);
    let pool = pool(2);
    pool.warm_up().unwrap();
    let reads = pool.submit(reads_everything, ()).unwrap();
    while !reads.is_done() {
        assert_eq!(outcome(pool.submit(square, 3).unwrap()).unwrap(), 9);
    }
}

#[test]
fn garbage_over_ipc_delays_neither_deadline_nor_shutdown() {
    garbage_over_ipc(false);
}

/// The host shares the flags of the open file.
#[test]
fn garbage_over_nonblocking_ipc_delays_neither() {
    garbage_over_ipc(true);
}

/// Tries one descriptor after the other, as each worker has the same ones.
fn garbage_over_ipc(without_blocking: bool) {
    fn writes_garbage((number, without_blocking): (i32, bool)) {
        if let Ok(file) = misdeeds::duplicate(number) {
            if without_blocking {
                let _ = rustix::fs::fcntl_setfl(&file, rustix::fs::OFlags::NONBLOCK);
            }
            let _ = File::from(file).write(&[7; 30]);
        }
    }
    let _watchdog = Watchdog::new("garbage over ipc", 2 * BOUND);
    let limit = Duration::from_millis(200);
    for number in 3..14 {
        let pool = builder(2).link(Link::Ipc).build().unwrap();
        pool.warm_up().unwrap();
        let guilty =
            pool.task(writes_garbage).deadline(limit).submit((number, without_blocking)).unwrap();
        let innocent: Vec<_> = (0..20).map(|number| pool.submit(square, number).unwrap()).collect();
        if let Err(error) = outcome(guilty) {
            assert!(error.is_deadline() || error.is_worker_death(), "{number}: {error:?}");
        }
        let mut dead = BTreeSet::new();
        for (number, handle) in (0..).zip(innocent) {
            match outcome(handle) {
                Ok(value) => assert_eq!(value, number * number),
                // It ran in the same worker behind the garbage, where nothing counts any more.
                error => drop(dead.insert(worker_died(error).0)),
            }
        }
        assert!(dead.len() <= 1, "only one worker wrote garbage, but {dead:?} died");
        let guilty = pool.submit(writes_garbage, (number, without_blocking)).unwrap();
        let _ = pool.shutdown_with(Shutdown::Drain, limit);
        let _ = outcome(guilty);
    }
}
