//! Measures the timer server and its peers: lateness of kills, and cost of requests.
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
#![expect(clippy::print_stdout, reason = "it prints its figures")]
#![expect(clippy::expect_used, reason = "there is nothing to measure without the value")]

mod lateness;
mod peers;
mod pool;
mod requests;

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use brigade_base::TimerHeap;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    measurement: Measurement,
}

#[derive(Debug, Subcommand)]
enum Measurement {
    /// Kills processes at deadlines between 1 and 500 ms, and prints the lateness.
    Lateness {
        #[arg(long, default_value_t = 10_000)]
        deadlines: usize,
        /// Number of loops that keep the cores busy meanwhile.
        #[arg(long, default_value_t = 0)]
        busy: usize,
    },
    /// Acquires and releases deadlines, compared with ipc-channel and Python's queue.
    Requests {
        #[arg(long, default_value_t = 100_000)]
        rounds: u32,
        #[arg(long, default_value = "python3")]
        python: PathBuf,
    },
    /// Kills one late process at a time, compared with Python's pools: time from deadline to death.
    Peers {
        #[arg(long, default_value_t = 40)]
        processes: usize,
        #[arg(long, default_value = "python3")]
        python: PathBuf,
    },
    /// Prints the memory of a million timers.
    Memory,
    /// Runs tasks that hang past their deadline: time until the caller has the outcome.
    Pool {
        #[arg(long, default_value_t = 10_000)]
        tasks: usize,
        /// Number of loops that keep the cores busy meanwhile.
        #[arg(long, default_value_t = 0)]
        busy: usize,
    },
    /// Runs tasks that finish close to their deadline.
    Edge {
        #[arg(long, default_value_t = 100_000)]
        tasks: u64,
    },
    /// Kills a task that holds a gigabyte: time until the next task has run.
    Heavy {
        #[arg(long, default_value_t = 10)]
        rounds: usize,
    },
    /// Hangs past a deadline; started by this program only.
    #[command(hide = true)]
    Late { deadline: u64 },
}

fn main() -> Result<(), Box<dyn Error>> {
    brigade::init();
    let measurement = Arguments::parse().measurement;
    if let Measurement::Late { deadline } = measurement {
        return lateness::hang_past(deadline);
    }
    let load = fs::read_to_string("/proc/loadavg")?;
    println!("load before: {}", load.split_whitespace().next().unwrap_or("unknown"));
    match measurement {
        Measurement::Lateness { deadlines, busy } => lateness::measure(deadlines, busy),
        Measurement::Requests { rounds, python } => requests::measure(rounds, &python),
        Measurement::Peers { processes, python } => peers::measure(processes, &python),
        Measurement::Memory => memory(),
        Measurement::Pool { tasks, busy } => pool::lateness(tasks, busy),
        Measurement::Edge { tasks } => pool::edge(tasks),
        Measurement::Heavy { rounds } => pool::heavy(rounds),
        Measurement::Late { .. } => Ok(()),
    }
}

fn memory() -> Result<(), Box<dyn Error>> {
    const TIMERS: u64 = 1_000_000;
    let resident = || -> Result<u64, Box<dyn Error>> {
        let pages = fs::read_to_string("/proc/self/statm")?;
        Ok(pages.split_whitespace().nth(1).ok_or("no resident size")?.parse::<u64>()? * 4096)
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

/// Prints the median, the 99th percentile and the maximum, by nearest rank.
fn print_times(name: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let rank = |percent: usize| times[(times.len() * percent).div_ceil(100).max(1) - 1];
    let (count, p50, p99, max) = (times.len(), rank(50), rank(99), rank(100));
    println!("{name:44} n {count:6}  p50 {p50:>10.1?}  p99 {p99:>10.1?}  max {max:>10.1?}");
}
