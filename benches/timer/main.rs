//! The timer server in figures: how late it kills, what a request costs, and what peers do.
//!
//! ```sh
//! cargo run --release -p brigade-benches --bin timer -- lateness
//! cargo run --release -p brigade-benches --bin timer -- lateness --busy 4
//! cargo run --release -p brigade-benches --bin timer -- requests --python venv/bin/python
//! cargo run --release -p brigade-benches --bin timer -- peers --python venv/bin/python
//! cargo run --release -p brigade-benches --bin timer -- pool
//! cargo run --release -p brigade-benches --bin timer -- edge
//! cargo run --release -p brigade-benches --bin timer -- heavy
//! ```

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it reports what it has measured")]

mod lateness;
mod peers;
mod pool;
mod requests;

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use brigade_timer::TimerHeap;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Kills processes at deadlines between 1 and 500 ms, and tells how late.
    Lateness {
        #[arg(long, default_value_t = 10_000)]
        deadlines: usize,
        /// So many loops keep the cores busy meanwhile.
        #[arg(long, default_value_t = 0)]
        busy: usize,
    },
    /// Acquires and releases, against ipc-channel and Python's queue.
    Requests {
        #[arg(long, default_value_t = 100_000)]
        rounds: u32,
        #[arg(long, default_value = "python3")]
        python: PathBuf,
    },
    /// One late process at a time, against pools of Python: how long after its deadline it is dead.
    Peers {
        #[arg(long, default_value_t = 40)]
        processes: usize,
        #[arg(long, default_value = "python3")]
        python: PathBuf,
    },
    /// Memory of a million timers.
    Memory,
    /// Tasks of a pool that hang until their deadline: how late the caller knows.
    Pool {
        #[arg(long, default_value_t = 10_000)]
        tasks: usize,
        /// So many loops keep the cores busy meanwhile.
        #[arg(long, default_value_t = 0)]
        busy: usize,
    },
    /// Tasks of a pool that end just at their deadline.
    Edge {
        #[arg(long, default_value_t = 100_000)]
        tasks: u64,
    },
    /// A task with a gigabyte of memory is killed: how long until the next one has run.
    Heavy {
        #[arg(long, default_value_t = 10)]
        rounds: usize,
    },
    /// What this program starts: a process that has a deadline, and hangs.
    #[command(hide = true)]
    Late { deadline: u64 },
}

fn main() -> Result<(), Box<dyn Error>> {
    brigade::init();
    let what = Arguments::parse().what;
    if let What::Late { deadline } = what {
        return lateness::be_late(deadline);
    }
    let load = fs::read_to_string("/proc/loadavg")?;
    println!("load before: {}", load.split_whitespace().next().unwrap_or("unknown"));
    match what {
        What::Lateness { deadlines, busy } => lateness::measure(deadlines, busy),
        What::Requests { rounds, python } => requests::measure(rounds, &python),
        What::Peers { processes, python } => peers::measure(processes, &python),
        What::Memory => memory(),
        What::Pool { tasks, busy } => pool::lateness(tasks, busy),
        What::Edge { tasks } => pool::edge(tasks),
        What::Heavy { rounds } => pool::heavy(rounds),
        What::Late { .. } => Ok(()),
    }
}

fn memory() -> Result<(), Box<dyn Error>> {
    const TIMERS: u64 = 1_000_000;
    let resident = || -> Result<u64, Box<dyn Error>> {
        let pages = fs::read_to_string("/proc/self/statm")?;
        Ok(pages.split_whitespace().nth(1).ok_or("no figure")?.parse::<u64>()? * 4096)
    };
    let before = resident()?;
    let mut timers = TimerHeap::new();
    for number in 0..TIMERS {
        timers.arm(number, number);
    }
    let bytes = (resident()? - before) / TIMERS;
    println!("{} timers with a value of 8 bytes: {bytes} bytes each, resident", timers.len());
    Ok(())
}

/// Median, 99th percentile and largest, by nearest rank.
fn print_times(name: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let rank = |percent: usize| times[(times.len() * percent).div_ceil(100).max(1) - 1];
    let (count, p50, p99, max) = (times.len(), rank(50), rank(99), rank(100));
    println!("{name:44} n {count:6}  p50 {p50:>10.1?}  p99 {p99:>10.1?}  max {max:>10.1?}");
}
