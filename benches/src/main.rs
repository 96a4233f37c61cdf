//! Measures Brigade, the raw limits below it and its peers in one run: `cargo xtask bench`.
//!
//! A run is made of rounds, a round of [sections](section::Section), and in each section all
//! [contestants](contestant::Contestant) take turns, so that a noisy machine disturbs all of them.
//! Each turn is a process of its own: nobody inherits warm memory from another, and one that hangs
//! or crashes costs its own figures and nothing else. A contestant says what it measured as one
//! [report](report::Report) on its standard output; this very executable is several of them.
//!
//! Bare times of a shared machine mean little. What counts are ratios within a round.

#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "reports go to stdout, progress to stderr"
)]

mod arguments;
mod contestant;
mod facts;
mod load;
mod ours;
mod raw;
mod report;
mod results;
mod role;
mod rounds;
mod sample;
mod section;
mod supervise;
mod threads;
mod tree;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::Arguments;
use crate::role::Role;

fn main() -> ExitCode {
    brigade::init();
    let outcome = match Role::of_this_process() {
        Some(role) => role.play(),
        None => rounds::run(&Arguments::parse()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
