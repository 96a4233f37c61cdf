//! Parses the command line.

use std::path::{Path, PathBuf};

use clap::Parser;

use crate::folders;
use crate::section::Section;

/// Measures Brigade, the raw limits and the peers in turn, prints the figures and checks the goals.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench")]
pub(crate) struct Arguments {
    /// Number of rounds; figures are medians over them.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub(crate) rounds: u64,
    /// Measure less of everything; for trying things out, not for publishing.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seconds to watch an idle pool, twice [default: 10, or 5 with --quick].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=75))]
    pub(crate) idle_seconds: Option<u64>,
    /// Measure only these sections.
    #[arg(long, value_delimiter = ',', value_enum)]
    pub(crate) only: Vec<Section>,
    /// File for all raw figures, as JSON [default: target/bench/figures.json].
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
    /// Also measure the peers that need an installation, which is made below target/.
    #[arg(long)]
    pub(crate) peers: bool,
    /// Python interpreter for the peers written in Python [default: python3, or the one of an
    /// environment below target/ with --peers].
    #[arg(long)]
    pub(crate) python: Option<PathBuf>,
    /// Program built from benches/peers/procspawn [default: built below target/ with --peers].
    #[arg(long)]
    pub(crate) procspawn: Option<PathBuf>,
    /// Program built from benches/peers/iceoryx2 [default: built below target/ with --peers].
    #[arg(long)]
    pub(crate) iceoryx2: Option<PathBuf>,
    /// This program without the feature `recording` [default: built below target/ with --peers].
    #[arg(long)]
    pub(crate) unrecorded: Option<PathBuf>,
    /// Rewrite the parts of README.md and docs/performance.md between `<!-- bench:NAME -->` and
    /// `<!-- /bench:NAME -->`; needs a run of all sections.
    #[arg(long, conflicts_with = "only")]
    pub(crate) write: bool,
}

impl Arguments {
    pub(crate) fn python(&self) -> &Path {
        self.python.as_deref().unwrap_or(Path::new("python3"))
    }

    pub(crate) fn json(&self) -> PathBuf {
        let default = || folders::target().join("bench/figures.json");
        self.json.clone().unwrap_or_else(default)
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::Arguments;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once("compare").chain(line.split_whitespace()))
    }

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn documents_are_written_only_after_a_whole_run() {
        assert!(parse("--write --quick").is_ok());
        assert!(parse("--write --only idle").is_err());
    }
}
