//! Random faults in real processes, with a ledger: `stress --seed S --seconds N [--workers W]`, or `--tasks N` instead of seconds.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it is a program; the seed and the table are its output")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use brigade_integration::stress::{self, Settings, Surroundings};
use brigade_testkit::Random;
use clap::Parser;

/// Runs random operations on pools and checks that every task gets the outcome that it must get.
#[derive(Debug, Parser)]
struct Arguments {
    /// Repeats a run; a fresh one is taken and printed when it is missing.
    #[arg(long)]
    seed: Option<u64>,
    /// How long new pools are made.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// The most workers of a pool.
    #[arg(long, default_value_t = 4)]
    workers: usize,
    /// One pool with so many tasks instead of many pools for some seconds.
    #[arg(long, conflicts_with = "seconds")]
    tasks: Option<u64>,
    /// Where that pool writes its journal, which is then replayed.
    #[arg(long, requires = "tasks")]
    journal: Option<PathBuf>,
    /// Plays all rounds in a child process with these surroundings; an unknown name lists them.
    #[arg(long, conflicts_with = "tasks")]
    surroundings: Option<Surroundings>,
    /// Says that this process is that child.
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
