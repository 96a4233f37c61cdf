//! The options of the command. Help, completions and the page of the manual all come from here.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use brigade::runner::{Halt, Limit};
use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

use crate::input::Format;

/// Runs commands on pinned cores: nothing orphaned, nothing lost, results that can be resumed.
#[derive(Debug, Parser)]
#[command(name = "brigade", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a list of commands, as many at once as there are cores
    Run(Box<Run>),
    /// Show the machine, and the cores that jobs can be pinned to
    Topology,
    /// Write completions for a shell to standard output
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the page of the manual to standard output
    Man,
}

const EXAMPLES: &str = "\
Examples:
  brigade run -- gzip -9 {} ::: *.log              one job for each argument
  find . -name '*.c' | brigade run -- cc -c {}     one job for each line
  brigade run -- ./bench {1} {2} ::: a b ::: 1 2   all combinations
  brigade run --shell -- 'sort {} | uniq > {.}.u' ::: *.txt
  brigade run commands.txt                         one command a line
  brigade run --joblog log --resume jobs.toml      what has not succeeded yet

Places in a command:
  {} the argument    {.} without extension    {/} without folder    {//} its folder
  {/.} neither       {1} {2.} of that list    {#} the job's number  {%} its slot

The exit status is the number of jobs that failed, 101 if there were more than 100, 130 if it was
interrupted, and 255 if the run itself was not possible.";

/// Run a list of commands, as many at once as there are cores
///
/// Each job leads a process group of its own, is pinned to cores of its own, and is gone with all its group when it is
/// over, when the run is, and when brigade itself is killed.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    clippy::struct_field_names,
    reason = "each flag of the command is one, under its name"
)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// A file of jobs: TOML, JSON lines, or one shell command a line; `-` for standard input
    #[arg(value_hint = ValueHint::FilePath, conflicts_with = "command")]
    pub(crate) file: Option<PathBuf>,

    /// A command with places, and lists: `::: A B` of arguments, `:::: FILE` of arguments in a file.
    /// Without a list, arguments are the lines of standard input
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,

    /// How FILE is written [default: what its name says, or lines]
    #[arg(long, value_enum, requires = "file", help_heading = "Input")]
    pub(crate) format: Option<Format>,

    /// Arguments and lines end with a zero byte instead of a line's end
    #[arg(short = '0', long, help_heading = "Input")]
    pub(crate) null: bool,

    /// COMMAND is a line for /bin/sh; what is put into it is quoted
    #[arg(long, requires = "command", help_heading = "Input")]
    pub(crate) shell: bool,

    /// Run jobs that are the same, instead of calling them a mistake
    #[arg(long, help_heading = "Input")]
    pub(crate) allow_duplicates: bool,

    /// Run the jobs in random order
    #[arg(long, conflicts_with = "keep_order", help_heading = "Input")]
    pub(crate) shuffle: bool,

    /// The random order that this number stands for
    #[arg(long, requires = "shuffle", value_name = "N", help_heading = "Input")]
    pub(crate) seed: Option<u64>,

    /// How many jobs run at once [default: as there are cores for]
    #[arg(short, long, value_name = "N", help_heading = "Cores")]
    pub(crate) jobs: Option<NonZeroUsize>,

    /// How many cores each job gets
    #[arg(short, long, value_name = "N", default_value = "1", help_heading = "Cores")]
    pub(crate) cores_per_job: NonZeroUsize,

    /// Which cores a job gets
    #[arg(long, value_enum, default_value_t, help_heading = "Cores")]
    pub(crate) policy: CorePolicy,

    /// Let jobs run on any core, for those that wait more than they work
    #[arg(long, conflicts_with = "policy", help_heading = "Cores")]
    pub(crate) no_pin: bool,

    /// Add this to the niceness of jobs
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        allow_negative_numbers = true,
        help_heading = "Cores"
    )]
    pub(crate) nice: i32,

    /// Start a job only while this much memory is available, as in 500M or 2G
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Cores")]
    pub(crate) memfree: Option<u64>,

    /// End a job that takes longer: seconds, or a percentage of the median, as in 300%
    #[arg(long, value_name = "LIMIT", help_heading = "Failures")]
    pub(crate) timeout: Option<Limit>,

    /// Run a job that failed again, up to N more times
    #[arg(long, value_name = "N", default_value = "0", help_heading = "Failures")]
    pub(crate) retries: u32,

    /// Stop early: now or soon, then fail, success or done = N or N%, as in now,fail=1
    #[arg(long, value_name = "POLICY", help_heading = "Failures")]
    pub(crate) halt: Option<Halt>,

    /// Wait this many seconds between two starts
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, help_heading = "Failures")]
    pub(crate) delay: Option<Duration>,

    /// A shell command that must succeed before any job is started
    #[arg(long, value_name = "COMMAND", help_heading = "Failures")]
    pub(crate) canary: Option<String>,

    /// How many seconds the canary may take
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_seconds, help_heading = "Failures")]
    pub(crate) canary_timeout: Duration,

    /// Log finished jobs to this file, as GNU parallel does
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Results")]
    pub(crate) joblog: Option<PathBuf>,

    /// Run only jobs that have no success in the log
    #[arg(long, requires = "joblog", help_heading = "Results")]
    pub(crate) resume: bool,

    /// The same, under the name that GNU parallel has for it
    #[arg(long, requires = "joblog", help_heading = "Results")]
    pub(crate) resume_failed: bool,

    /// Keep outputs in this folder, laid out as GNU parallel does
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Results")]
    pub(crate) results: Option<PathBuf>,

    /// Write a page that shows who ran where and when
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Results")]
    pub(crate) report: Option<PathBuf>,

    /// Write a trace that Perfetto opens
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Results")]
    pub(crate) trace: Option<PathBuf>,

    /// Print outputs in the order of the jobs
    #[arg(short, long, help_heading = "Output")]
    pub(crate) keep_order: bool,

    /// Begin each line of output with the job's arguments
    #[arg(long, help_heading = "Output")]
    pub(crate) tag: bool,

    /// Print lines as they come instead of job by job
    #[arg(long, alias = "lb", conflicts_with = "keep_order", help_heading = "Output")]
    pub(crate) line_buffer: bool,

    /// Print what happens as JSON lines instead of outputs
    #[arg(long, conflicts_with_all = ["tag", "keep_order", "line_buffer"], help_heading = "Output")]
    pub(crate) json: bool,

    /// Show progress even without a terminal, as lines
    #[arg(long, overrides_with = "no_bar", help_heading = "Output")]
    pub(crate) bar: bool,

    /// Show no progress, even on a terminal
    #[arg(long, help_heading = "Output")]
    pub(crate) no_bar: bool,

    /// The same as --bar, under the name that GNU parallel has for it
    #[arg(long, help_heading = "Output")]
    pub(crate) eta: bool,

    /// Print the commands instead of running them
    #[arg(long, help_heading = "Output")]
    pub(crate) dry_run: bool,
}

/// Which cores a job gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CorePolicy {
    /// Hardware threads that are neighbours in the machine
    #[default]
    Contiguous,
    /// As few memory nodes and caches as possible
    Compact,
    /// Far from each other, for the most memory bandwidth and cache
    Scatter,
    /// Whole cores, each with all of its hardware threads
    WholeCores,
    /// Whole cores, of which one hardware thread is used and the others stay idle
    OneThread,
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "give seconds, as in 0.5".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "give seconds from 0 on".to_owned())
}

/// A size with a unit of 1024, as GNU parallel takes it.
fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || "give a number of bytes, as in 500M, 2G or 1.5G".to_owned();
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let factor: f64 = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1.0,
        "K" | "KB" | "KIB" => 1024.0,
        "M" | "MB" | "MIB" => 1024.0 * 1024.0,
        "G" | "GB" | "GIB" => 1024.0 * 1024.0 * 1024.0,
        "T" | "TB" | "TIB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(wrong()),
    };
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    if !(0.0..1e9).contains(&number) {
        return Err(wrong());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    Ok((number * factor) as u64)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("10"), Ok(10));
        assert_eq!(parse_size("1.5K"), Ok(1536));
        assert_eq!(parse_size("2gb"), Ok(2 << 30));
        for wrong in ["", "K", "-1", "1X", "nan", "1e12"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
