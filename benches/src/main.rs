//! Measures Brigade, the raw limits below it and its peers in one run: `cargo xtask bench`.
//!
//! A run is made of rounds, a round of [sections](section::Section), and in each section all
//! [contestants](contestant::Contestant) take turns, so that a noisy machine disturbs all of them.
//! Each turn is a process of its own: no contestant inherits warm memory from another, and one that
//! hangs or crashes loses only its own figures. A contestant prints its figures as one
//! [report](report::Report) on standard output. This executable also acts as several contestants.
//!
//! Absolute times on a shared machine mean little; the ratios within a round count.

#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "reports and tables go to stdout, progress to stderr"
)]

mod arguments;
mod awaiting;
mod blocking;
mod callers;
mod cluster;
mod contestant;
mod documents;
mod facts;
mod folders;
mod grain;
mod images;
mod load;
mod ours;
mod peers;
mod raw;
mod report;
mod results;
mod role;
mod rounds;
mod sample;
mod section;
mod service;
mod supervise;
mod tables;
mod threads;
mod tree;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::Arguments;
use crate::report::Outcome;
use crate::role::Role;

fn main() -> ExitCode {
    brigade::init();
    let outcome = match Role::of_this_process() {
        Some(role) => role.run(),
        None => run(Arguments::parse()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures everything, prints the tables and writes the files.
fn run(mut arguments: Arguments) -> Outcome<()> {
    if arguments.peers {
        peers::install(&mut arguments);
    }
    let results = rounds::run(&arguments)?;
    let json = arguments.json();
    results.write(&json)?;
    tables::print(&results);
    println!("\nall figures: {}", json.display());
    if arguments.write {
        documents::write(&results)?;
    }
    Ok(())
}
