//! Tasks that scribble over all that their worker can reach: `fuzz --seed S --seconds N` or `--rounds N [--link ring|ipc]`.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it is a program; the seed and the table are its output")]

use std::process::ExitCode;
use std::time::Duration;

use brigade_integration::fuzz::{self, Amount, Settings, Wire};
use brigade_testkit::Random;
use clap::Parser;

/// Runs pools in which some tasks scribble, and checks that all others get the outcome that they must get.
#[derive(Debug, Parser)]
struct Arguments {
    /// Repeats a run; a fresh one is taken and printed when it is missing. Round n of a run is the first one of this seed plus n.
    #[arg(long)]
    seed: Option<u64>,
    /// How long new rounds begin.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// A number of rounds instead of a time.
    #[arg(long, conflicts_with = "seconds")]
    rounds: Option<u64>,
    /// Both by turns when it is missing.
    #[arg(long)]
    link: Option<Wire>,
}

fn main() -> ExitCode {
    brigade::init();
    let arguments = Arguments::parse();
    let settings = Settings {
        seed: arguments.seed.unwrap_or_else(Random::fresh_seed),
        amount: match arguments.rounds {
            Some(rounds) => Amount::Rounds(rounds),
            None => Amount::Time(Duration::from_secs(arguments.seconds)),
        },
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
