//! Measures how a pool scales with cores (`cargo xtask scale`), and predicts it from a model
//! (`cargo xtask simulate`).
//!
//! Both are commands of this one program, which is linked statically: it runs on any machine with
//! the same processor architecture, without a toolchain. Each section of a measurement is a process
//! of its own, so that one that hangs or crashes loses only its own figures.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "figures go to stdout")]
#![expect(clippy::print_stderr, reason = "errors go to stderr")]

mod figures;
mod machine;
mod measure;
mod rate;
mod simulate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::figures::Outcome;
use crate::measure::section::{self, Section};

/// Measures how a pool scales on this machine, or predicts it for another one.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measures this machine, and prints tables.
    Measure(measure::Arguments),
    /// Predicts from a model of one pool which share of the cores tasks get.
    Simulate(simulate::Arguments),
    /// Measures one section and prints a line of JSON for each case; started by `measure` only.
    #[command(hide = true)]
    Section { section: Section, seconds: f64 },
    /// Ends at once: the cost of starting a process.
    #[command(hide = true)]
    Exit,
}

fn main() -> ExitCode {
    brigade::init();
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Outcome<()> {
    match command {
        Command::Measure(arguments) => measure::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Section { section, seconds } => section::run(section, seconds),
        Command::Exit => Ok(()),
    }
}
