//! Random faults in real processes, with a ledger: `stress --seed S --seconds N [--workers W]`, or
//! `--tasks N` instead of seconds.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a program; the seed and the table are its output")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use brigade_integration::stress::{self, Settings, Surroundings};
use brigade_testkit::Random;
use clap::Parser;

/// Runs random operations on pools and checks that every task gets a correct outcome.
#[derive(Debug, Parser)]
struct Arguments {
    /// Seed of the run. Default: a random seed, which is printed.
    #[arg(long)]
    seed: Option<u64>,
    /// Seconds in which new pools are made.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Maximum number of workers of a pool.
    #[arg(long, default_value_t = 4)]
    workers: usize,
    /// Number of tasks for a single pool, instead of many pools for some seconds.
    #[arg(long, conflicts_with = "seconds")]
    tasks: Option<u64>,
    /// Runs each of these tasks in a process of its own.
    #[arg(long, requires = "tasks")]
    fresh: bool,
    /// File for the journal of that pool, which is replayed at the end.
    #[arg(long, requires = "tasks")]
    journal: Option<PathBuf>,
    /// Surroundings in which a child process plays all rounds; an unknown name lists them.
    #[arg(long, conflicts_with = "tasks")]
    surroundings: Option<Surroundings>,
    /// Marks this process as that child.
    #[arg(long, hide = true, requires = "surroundings")]
    inside: bool,
}

fn main() -> ExitCode {
    brigade::init();
    let arguments = Arguments::parse();
    let settings = Settings {
        seed: arguments.seed.unwrap_or_else(Random::fresh_seed),
        time: Duration::from_secs(arguments.seconds),
        workers: arguments.workers.max(1),
        tasks: arguments.tasks,
        fresh: arguments.fresh,
        journal: arguments.journal,
        surroundings: arguments.surroundings,
        inside: arguments.inside,
    };
    println!("seed {}", settings.seed);
    match stress::run(&settings) {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            println!("{problem}\nrepeat with: {settings}");
            ExitCode::FAILURE
        }
    }
}
