//! Tasks that scribble over everything that their worker can reach: `fuzz --seed S --seconds N` or
//! `--rounds N [--link ring|ipc]`.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a program; the seed and the table are its output")]

use std::process::ExitCode;
use std::time::Duration;

use brigade_integration::fuzz::{self, Amount, Settings, Wire};
use brigade_testkit::Random;
use clap::Parser;

/// Runs pools in which some tasks scribble, and checks that all others get the right outcome.
#[derive(Debug, Parser)]
struct Arguments {
    /// Seed of the first round; each further round uses the next number. Default: a random seed,
    /// which is printed.
    #[arg(long)]
    seed: Option<u64>,
    /// Seconds in which new rounds begin.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Number of rounds, instead of a time.
    #[arg(long, conflicts_with = "seconds")]
    rounds: Option<u64>,
    /// The workers are attackers that know the protocol.
    #[arg(long)]
    hostile: bool,
    /// Link to use. Default: both, alternately.
    #[arg(long)]
    link: Option<Wire>,
}

fn main() -> ExitCode {
    if fuzz::attack() {
        return ExitCode::SUCCESS;
    }
    brigade::init();
    let arguments = Arguments::parse();
    let settings = Settings {
        seed: arguments.seed.unwrap_or_else(Random::fresh_seed),
        amount: match arguments.rounds {
            Some(rounds) => Amount::Rounds(rounds),
            None => Amount::Time(Duration::from_secs(arguments.seconds)),
        },
        hostile: arguments.hostile,
        link: arguments.link,
    };
    println!("seed {}", settings.seed);
    match fuzz::run(&settings) {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            println!("{problem}");
            ExitCode::FAILURE
        }
    }
}
