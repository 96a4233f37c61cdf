//! `brigade parallel`: translates a command line of GNU parallel to a run of `brigade run`.
//!
//! The words are brought into a form that clap reads as GNU parallel would ([`spelling`]); options
//! of `$PARALLEL`, configuration files and profiles come before them ([`profiles`]). What the run
//! then does differently is in its options, and in [`Run::is_gnu`].

mod profiles;
pub(crate) mod shell;
pub(crate) mod spelling;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use brigade::cores::Topology;
use clap::error::ErrorKind;
use miette::{IntoDiagnostic, Report};

use crate::arguments::{JobCount, Parallel, Run};
use spelling::Spelling;

/// The version of GNU parallel whose behavior this is.
const VERSION: u32 = 20_221_122;

/// Returns the words of a command line of `brigade parallel` as clap expects them: defaults, then
/// options, then `--` and the command.
pub(crate) fn words(
    words: Vec<OsString>,
    parallel: &clap::Command,
) -> Result<Vec<OsString>, clap::Error> {
    const BEFORE_OPTIONS: usize = 2;
    let spelling = Spelling::new(parallel);
    let own = spelling.read(&words[BEFORE_OPTIONS..]);
    let mut all = words[..BEFORE_OPTIONS].to_vec();
    let mut command = Vec::new();
    for source in profiles::sources(&own)? {
        let defaults = spelling.read(&source.words);
        source.check("parallel", &defaults.options)?;
        all.extend(defaults.options);
        command.extend(defaults.command);
    }
    all.extend(own.options);
    let mut all = compatible(all)?;
    all.push("--".into());
    command.extend(own.command);
    if all.iter().any(|word| word == "--retry-failed") {
        // The log has the commands.
        command.clear();
    } else if command.is_empty() {
        // The options of lists want a command.
        command.push("{}".into());
    }
    all.extend(command);
    Ok(all)
}

/// Resolves what clap would refuse: `-k` is stronger than `--line-buffer`, and the number of jobs
/// may be in a file.
fn compatible(words: Vec<OsString>) -> Result<Vec<OsString>, clap::Error> {
    let is_ordered = words.iter().rev().find_map(|word| match word.to_str() {
        Some("--keep-order") => Some(true),
        Some("--no-keep-order") => Some(false),
        _ => None,
    });
    let words = words.into_iter().filter(|word| {
        word != "--no-keep-order"
            && (is_ordered != Some(false) || word != "--keep-order")
            && (is_ordered != Some(true) || word != "--line-buffer")
    });
    words.map(jobs_in_file).collect()
}

/// Returns `--jobs=N` for `--jobs=FILE`; other words as they are.
fn jobs_in_file(word: OsString) -> Result<OsString, clap::Error> {
    let Some(value) = word.to_str().and_then(|word| word.strip_prefix("--jobs=")) else {
        return Ok(word);
    };
    if value.parse::<JobCount>().is_ok() || !Path::new(value).is_file() {
        return Ok(word);
    }
    let text = fs::read_to_string(value).map_err(|error| {
        let text = format!("cannot read the number of jobs in {value}: {error}\n");
        clap::Error::raw(ErrorKind::InvalidValue, text)
    })?;
    Ok(format!("--jobs={}", text.trim()).into())
}

/// Runs the jobs, or prints what was asked for instead. Returns the exit status.
pub(crate) fn run(parallel: Parallel) -> Result<u8, Report> {
    if let Some(version) = parallel.minversion {
        writeln!(io::stdout(), "{VERSION}").into_diagnostic()?;
        return Ok(u8::from(version > VERSION) * crate::RUN_FAILED);
    }
    if parallel.number_of_threads {
        let threads = Topology::discover().into_diagnostic()?.available_parallelism();
        writeln!(io::stdout(), "{threads}").into_diagnostic()?;
        return Ok(0);
    }
    crate::run::run(&translated(parallel.run))
}

/// Returns a run of `brigade run` that does what GNU parallel would do.
fn translated(run: Run) -> Run {
    let is_pinned = run.cores_per_job.is_some() || run.policy.is_some();
    Run {
        // `--retries` counts attempts.
        retries: run.retries.saturating_sub(1),
        shell: Some("/bin/sh".into()),
        allow_duplicates: true,
        no_pin: !is_pinned,
        no_bar: !(run.bar || run.eta),
        gnu_shell: Some(shell::of_user()),
        ..run
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::gnu;

    /// The section of the documentation with the table.
    const SECTION: &str = "### `brigade parallel`";

    #[test]
    fn the_table_of_options_is_true() {
        let mut command = crate::arguments::Arguments::command();
        command.build();
        let parallel = command.find_subcommand("parallel").expect("defined");
        let spelling = Spelling::new(parallel);
        let text = include_str!("../docs/manual.md");
        let (_, section) = text.split_once(SECTION).expect("a section");
        let (section, _) = section.split_once("\n## ").expect("another section");
        let rows: Vec<Vec<&str>> =
            section.lines().map(|line| line.split(" | ").collect()).collect();
        let mut count = 0;
        for row in rows.iter().filter(|row| row[0].starts_with("| `")) {
            let is_absent = row[1] == "absent";
            assert!(is_absent || ["same", "differs"].contains(&row[1]), "{row:?}");
            for option in row[0].split('`').filter(|option| option.starts_with('-')) {
                count += 1;
                assert_eq!(spelling.has(option), !is_absent, "{option}");
                let is_refused = gnu::advice(option).is_some();
                assert!(is_refused || !is_absent, "{option} is not refused by name");
            }
        }
        assert!(count > 100, "{count}");
    }
}
