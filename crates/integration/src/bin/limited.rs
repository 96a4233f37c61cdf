//! A host with a limited address space: sends large arguments back and forth, and reports the
//! result.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a program whose output the tests read")]
#![expect(clippy::expect_used, reason = "the test that runs this program notices its panic")]

use std::process::Command;

use brigade::Pool;
use brigade_testkit::faults::echoes;
use brigade_testkit::{BOUND, Watchdog, outcome, processes, wait_until};

/// Address space of a pool that was built long before any limit mattered.
const PLENTY: u64 = 16 << 30;

/// Less than a pool takes that has plenty and leaves nothing to others.
const LITTLE: u64 = 6 << 30;

const AT_A_TIME: usize = 4;

/// Bytes of a value that no worker's link should keep.
const VALUE: usize = 40 << 20;

fn main() {
    brigade::init();
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().expect("a mode");
    let workers = arguments.next().expect("a number of workers").parse().expect("a number");
    let _watchdog = Watchdog::new("a pool with little address space", BOUND);
    let result = match mode.as_str() {
        "carries" => pool(workers).and_then(|pool| carry(&pool, workers)),
        "lowers" => lowers(workers),
        "returns" => pool(workers).and_then(|pool| returns(&pool)),
        "confined-workers" => confined_workers(workers).and_then(|pool| carry(&pool, workers)),
        other => panic!("unknown mode: {other}"),
    };
    match result {
        Ok(()) => println!("well"),
        Err(problem) => println!("{problem}"),
    }
}

fn pool(workers: usize) -> Result<Pool, String> {
    Pool::builder().workers(workers).build().map_err(|error| error.to_string())
}

/// Builds a pool whose workers have less address space than the host, which has no limit.
fn confined_workers(workers: usize) -> Result<Pool, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "ulimit -v 1000000; exec \"$0\""]).arg(program);
    let builder = Pool::builder().workers(workers).worker_command(&command);
    builder.build().map_err(|error| error.to_string())
}

/// Sends large arguments to each worker that can be started, and back. Few at a time, because they
/// take address space too.
fn carry(pool: &Pool, workers: usize) -> Result<(), String> {
    // The pool does its work with fewer workers as well.
    let _ = pool.warm_up();
    for length in [20_000, 300_000] {
        for _ in 0..workers.div_ceil(AT_A_TIME) {
            let handles = [(); AT_A_TIME].map(|()| pool.submit(echoes, vec![7; length]));
            for handle in handles {
                let handle = handle.map_err(|error| error.to_string())?;
                let echo = outcome(handle).map_err(|error| error.to_string())?;
                assert_eq!(echo, vec![7; length], "another value");
            }
        }
    }
    Ok(())
}

/// Tests that the memory of large values that went through the links is returned.
fn returns(pool: &Pool) -> Result<(), String> {
    pool.warm_up().map_err(|error| error.to_string())?;
    let resident = || brigade_sys::memory::resident().expect("the size of this process");
    let before = resident();
    // Each is in the host two or three times for a moment, and all may arrive at once.
    let size = VALUE / 2;
    for handle in pool.broadcast(makes, size).map_err(|error| error.to_string())? {
        assert_eq!(outcome(handle).map_err(|error| error.to_string())?.len(), size);
    }
    wait_until("the memory of large values", BOUND / 2, || resident() < before + size as u64);
    Ok(())
}

/// Returns a value of `length` bytes.
fn makes(length: usize) -> Vec<u8> {
    vec![7; length]
}

/// Tests workers that start after the limit was lowered, with less address space than the host had
/// when it built the pool, and workers that start after it was raised again.
fn lowers(workers: usize) -> Result<(), String> {
    processes::limit_address_space(Some(PLENTY));
    let pool = pool(workers)?;
    carry(&pool, workers)?;
    for limit in [Some(LITTLE), Some(PLENTY), None] {
        pool.quiesce().map_err(|error| error.to_string())?;
        processes::limit_address_space(limit);
        carry(&pool, workers).map_err(|problem| format!("{limit:?}: {problem}"))?;
    }
    Ok(())
}
