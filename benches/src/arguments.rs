//! The command line.

use std::path::PathBuf;

use clap::Parser;

use crate::section::Section;

/// Measures Brigade, raw limits and peers in turn, and writes what was measured to files.
#[derive(Debug, Parser)]
pub(crate) struct Arguments {
    /// How often each contestant is measured; figures are medians over the rounds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub(crate) rounds: u64,
    /// Less of everything: for trying out, not for publishing.
    #[arg(long)]
    pub(crate) quick: bool,
    /// How long a pool without work is watched, twice.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=75))]
    pub(crate) idle_seconds: Option<u64>,
    /// Only these sections.
    #[arg(long, value_delimiter = ',', value_enum)]
    pub(crate) only: Vec<Section>,
    /// Where all raw figures go.
    #[arg(long, default_value = "target/bench/figures.json")]
    pub(crate) json: PathBuf,
    /// Where the same goes in lines with tabs, for programs that read no JSON.
    #[arg(long, default_value = "target/bench/figures.tsv")]
    pub(crate) table: PathBuf,
    /// The Python that runs the peers written in it.
    #[arg(long, default_value = "python3")]
    pub(crate) python: PathBuf,
    /// Measure the peers that are not in Python's standard library too.
    #[arg(long)]
    pub(crate) peers: bool,
    /// The program of benches/peers/procspawn, if it was built.
    #[arg(long)]
    pub(crate) procspawn: Option<PathBuf>,
}
