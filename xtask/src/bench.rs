//! `cargo xtask bench`: measures Brigade, the raw limits and its peers in one run, judges the goals,
//! and writes the figures into the documents.
//!
//! The measuring is done by the program `compare` of benches. Here its figures become tables: this
//! crate has no dependencies, so it reads the lines with tabs that `compare` writes beside its JSON.

mod blocks;
mod figures;
mod goals;
mod markers;
mod options;
mod peers;
mod table;
mod unit;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::checkout;
use crate::invocation::Invocation;

use figures::Figures;
use options::Options;

const USAGE: &str = "\
usage: cargo xtask bench [options]

  --rounds N           how often everything is measured (5); figures are medians over the rounds
  --quick              less of everything, for trying out
  --peers              also the peers that have to be installed first, below target/
  --only NAME[,NAME]   only these sections: throughput, latency, payload, start, crash, idle,
                       balance, serial, fallout, backlog, crowd, pressure, work
  --idle-seconds N     how long a pool without work is watched, twice (10)
  --json PATH          where all raw figures go (target/bench/figures.json)
  --write              rewrites the parts of README.md and docs/performance.md between
                       `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`";

/// The documents that figures are written into.
const DOCUMENTS: &[&str] = &["README.md", "docs/performance.md"];

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        println!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    let options = Options::parse(arguments).map_err(|problem| format!("{problem}\n\n{USAGE}"))?;
    let figures = measure(&options)?;
    print(&figures);
    println!("\nall figures: {}", options.json.display());
    if options.write {
        write(&figures)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(options: &Options) -> Result<Figures, String> {
    // Built before the clock of any contestant runs, and told apart from a measurement that fails.
    Invocation::cargo("build --release -p brigade-benches").run()?;
    let table = target().join("bench/figures.tsv");
    let mut compare =
        Invocation::cargo("run --quiet --release -p brigade-benches --bin compare --").arguments([
            "--rounds".to_owned(),
            options.rounds.to_string(),
            "--json".to_owned(),
            options.json.display().to_string(),
            "--table".to_owned(),
            table.display().to_string(),
        ]);
    if options.quick {
        compare = compare.arguments(["--quick".to_owned()]);
    }
    if let Some(seconds) = options.idle_seconds {
        compare = compare.arguments(["--idle-seconds".to_owned(), seconds.to_string()]);
    }
    if let Some(only) = &options.only {
        compare = compare.arguments(["--only".to_owned(), only.clone()]);
    }
    if options.peers {
        compare = compare.arguments(peers::install());
    }
    // A table of an earlier run must not pass for this one's.
    let _ = std::fs::remove_file(checkout::root().join(&table));
    compare.run()?;
    let text = std::fs::read_to_string(checkout::root().join(&table))
        .map_err(|error| format!("{}: {error}", table.display()))?;
    Figures::parse(&text)
}

fn print(figures: &Figures) {
    println!("\n{}", blocks::listing(figures));
    println!("Goals\n\n{}", goals::table(figures).text());
    let missing = blocks::missing(figures);
    if !missing.is_empty() {
        println!("Not measured\n\n{missing}");
    }
}

/// Puts each block into each document that has a place for it, and says where it has none.
fn write(figures: &Figures) -> Result<(), String> {
    let blocks = blocks::all(figures);
    for document in DOCUMENTS {
        let path = checkout::root().join(document);
        let failed = |error: std::io::Error| format!("{document}: {error}");
        let mut text = std::fs::read_to_string(&path).map_err(failed)?;
        let (mut written, mut absent) = (Vec::new(), Vec::new());
        for (name, block) in &blocks {
            match markers::replace(&text, name, block)
                .map_err(|why| format!("{document}: {why}"))?
            {
                Some(changed) => {
                    text = changed;
                    written.push(*name);
                }
                None => absent.push(*name),
            }
        }
        std::fs::write(&path, text).map_err(failed)?;
        let listed = |names: &[&str]| match names {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        println!("{document}: wrote {}; has no markers for {}", listed(&written), listed(&absent));
    }
    Ok(())
}

/// Cargo's folder for what is built, from the root on.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new("target").to_owned(), PathBuf::from)
}
