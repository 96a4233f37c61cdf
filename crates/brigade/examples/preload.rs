//! "All workers need the same large table."
//!
//! ```sh
//! cargo run --release -p brigade --example preload -- 200 8
//! ```
//!
//! The table (its size in MiB is the first argument) is made once, in the process from which the
//! workers are forked. Each worker has it at once and for the price of a few pages: the program
//! prints the memory of each, in which shared pages count in parts (PSS).

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it prints what it has found")]

use std::error::Error;
use std::time::Instant;

use brigade::{Pool, Start, worker};

/// The squares of all numbers below the length.
struct Table(Vec<u64>);

fn make(length: usize) -> Table {
    Table((0..length as u64).map(|number| number.wrapping_mul(number)).collect())
}

fn look_up(number: usize) -> Option<u64> {
    let Table(squares) = worker::preloaded()?;
    squares.get(number).copied()
}

fn main() -> Result<(), Box<dyn Error>> {
    brigade::init();
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let mebibytes = arguments.next().transpose()?.unwrap_or(200);
    let workers = arguments.next().transpose()?.unwrap_or(8);
    let length = (mebibytes << 20) / size_of::<u64>();

    let begin = Instant::now();
    let builder = Pool::builder().workers(workers).start(Start::Fork);
    let pool = builder.preload(make, length).build()?;
    pool.broadcast(look_up, 1)?.into_iter().try_for_each(|handle| handle.wait().map(drop))?;
    println!("{workers} workers with a table of {mebibytes} MiB after {:.1?}", begin.elapsed());

    let begin = Instant::now();
    let numbers = (0..1_000_000).map(|number| number * 7_919 % length.max(1));
    let mut sum = 0_u64;
    for square in pool.map(look_up, numbers) {
        sum = sum.wrapping_add(square?.unwrap_or(0));
    }
    println!("1,000,000 numbers looked up in {:.1?}; their sum is {sum:x}", begin.elapsed());

    for pid in pool.worker_pids() {
        let [all, own] = ["Pss:", "Private_Dirty:"].map(|name| kib(pid, name));
        println!("worker {pid}: {:.1} MiB, {:.1} MiB of its own", all? / 1024.0, own? / 1024.0);
    }
    Ok(())
}

/// Returns a field of `/proc/PID/smaps_rollup`.
fn kib(pid: u32, name: &str) -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let line = line.ok_or_else(|| format!("no {name} in smaps_rollup"))?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
