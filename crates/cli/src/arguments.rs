//! The options of the command. Help, completions and the manual page are generated from them.

mod cluster;
mod cluster_run;
mod confine;
mod connection;
mod examples;
mod job;
mod lists;
mod output;
mod parallel;
mod pipe;
mod resources;
mod sem;
mod values;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use brigade::runner::{Limit, Retry};
use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

use crate::input::Format;
pub(crate) use cluster::{Cluster, Dead, Node, QueueAddress, Status as ClusterStatusOptions};
pub(crate) use cluster_run::ClusterRunOptions;
pub(crate) use confine::{LimitOptions, SandboxOptions};
pub(crate) use connection::LoginOptions;
use examples::EXAMPLES;
pub(crate) use job::JobOptions;
pub(crate) use lists::ListOptions;
pub(crate) use output::OutputOptions;
pub(crate) use parallel::Parallel;
pub(crate) use pipe::{BlockSize, PipeOptions};
pub(crate) use resources::ResourceOptions;
pub(crate) use sem::Sem;
pub(crate) use values::parse_size;
use values::{HaltParser, parse_count, parse_limit, parse_number, parse_retry, parse_seconds};
pub(crate) use values::{HaltPolicy, JobCount, Load};

/// Runs lists of commands on pinned cores, leaves no process behind, resumes interrupted runs
#[derive(Debug, Parser)]
#[command(name = "brigade", version = env!("BRIGADE_VERSION"), propagate_version = true, max_term_width = 80)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<Run>),
    Parallel(Box<Parallel>),
    Sem(Sem),
    /// Show which parts of a sandbox and which limits this machine can enforce
    Sandbox,
    /// Show the machine's topology, and which cores jobs can be pinned to
    Topology,
    /// Show a live view of a run, a pool or a cluster in the terminal
    ///
    /// ADDRESS is the one given to `brigade run --status`, or to a pool's `serve_status`. For a
    /// cluster it is that of its NATS server, and begins with nats:// or tls://.
    Top {
        /// Address of the live view, such as 127.0.0.1:8080, 8080 or `nats://127.0.0.1:4222`
        #[arg(value_hint = ValueHint::Other)]
        address: String,

        /// Name of the queue, for a cluster
        #[arg(long, value_name = "NAME", default_value = "default")]
        queue: String,

        #[command(flatten)]
        login: LoginOptions,
    },
    Node(Box<Node>),
    #[command(subcommand)]
    Cluster(Cluster),
    /// Run commands for a node, which starts this itself
    #[command(hide = true)]
    ServeCommands {
        /// Name of the node's host
        host: String,

        #[command(flatten)]
        sandbox: SandboxOptions,

        #[command(flatten)]
        limits: LimitOptions,
    },
    /// Print a script that completes the command line in a shell
    ///
    /// For bash: eval "$(brigade completions bash)", or write it to
    /// ~/.local/share/bash-completion/completions/brigade.
    Completions {
        /// Shell to complete for
        shell: Shell,
    },
    /// Write the manual pages
    ///
    /// For man: mkdir -p ~/.local/share/man/man1; brigade man ~/.local/share/man/man1
    Man {
        /// Existing directory to write them to [default: standard output]
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: Option<PathBuf>,
    },
}

/// Run a list of commands in parallel, each pinned to its own cores
///
/// Each job is pinned to its own cores and leads its own process group. The whole group is gone
/// when the job is over, when the run is over, and when brigade itself is killed.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    clippy::struct_field_names,
    reason = "each option of the command is a field of the same name"
)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub(crate) struct Run {
    /// Job file: TOML, JSON lines, or one shell command per line; `-` for standard input
    #[arg(value_hint = ValueHint::FilePath, conflicts_with = "command")]
    pub(crate) file: Option<PathBuf>,

    /// Command with replacement strings, then argument lists: `::: A B` for words, `:::: FILE` for
    /// the lines of a file. Several lists are combined; `:::+` and `::::+` link a list to the one
    /// before it. Without a list, each line of standard input is an argument
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,

    /// Format of FILE [default: by its extension, else lines]
    #[arg(long, value_enum, requires = "file", help_heading = "Input")]
    pub(crate) format: Option<Format>,

    /// Run COMMAND as a line of /bin/sh, or of another shell, as in --shell=bash. Inserted
    /// arguments are quoted
    #[arg(
        long,
        value_name = "SHELL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "/bin/sh",
        requires = "command",
        value_hint = ValueHint::CommandName,
        help_heading = "Input"
    )]
    pub(crate) shell: Option<OsString>,

    #[command(flatten)]
    pub(crate) job: JobOptions,

    /// Run duplicate jobs instead of reporting an error
    #[arg(long, help_heading = "Input")]
    pub(crate) allow_duplicates: bool,

    /// Run the jobs in random order
    #[arg(long, alias = "shuf", conflicts_with = "keep_order", help_heading = "Input")]
    pub(crate) shuffle: bool,

    /// Seed for --shuffle [default: random]
    #[arg(long, requires = "shuffle", value_name = "N", value_parser = parse_number::<u64>, help_heading = "Input")]
    pub(crate) seed: Option<u64>,

    /// Pass the words of COMMAND on unchanged, as without --shell
    #[arg(short, long, requires = "command", help_heading = "Input")]
    pub(crate) quote: bool,

    #[command(flatten)]
    pub(crate) lists: ListOptions,

    #[command(flatten)]
    pub(crate) pipe: PipeOptions,

    /// Maximum number of jobs at once: N, or relative to the usable cores: N%, +N or -N; 0 for as
    /// many as possible. More jobs than cores are not pinned [default: 100%]
    #[arg(
        short,
        long,
        short_alias = 'P',
        alias = "max-procs",
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Cores"
    )]
    pub(crate) jobs: Option<JobCount>,

    /// Number of cores for each job [default: 1]
    #[arg(short, long, value_name = "N", value_parser = parse_count, help_heading = "Cores")]
    pub(crate) cores_per_job: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(crate) resources: ResourceOptions,

    /// Policy for choosing the cores of a job [default: contiguous]
    #[arg(long, value_enum, help_heading = "Cores")]
    pub(crate) policy: Option<CorePolicy>,

    /// Do not pin jobs to cores; useful for jobs that mostly wait
    #[arg(long, conflicts_with_all = ["policy", "cores_per_job"], help_heading = "Cores")]
    pub(crate) no_pin: bool,

    /// Amount to add to the niceness of jobs, from 0 to 19
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        value_parser = parse_number::<i32>,
        allow_negative_numbers = true,
        help_heading = "Cores"
    )]
    pub(crate) nice: i32,

    #[command(flatten)]
    pub(crate) sandbox: SandboxOptions,

    #[command(flatten)]
    pub(crate) limits: LimitOptions,

    /// Start jobs only while this much memory is available, such as 500M or 2G
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Cores")]
    pub(crate) memfree: Option<u64>,

    /// Start jobs only while fewer threads run on the machine: a number, or a percentage of the
    /// usable cores such as 100%
    #[arg(long, value_name = "N", help_heading = "Cores")]
    pub(crate) load: Option<Load>,

    /// Environment variable for the number of a job's slot, from 0
    #[arg(long, value_name = "NAME", help_heading = "Cores")]
    pub(crate) process_slot_var: Option<OsString>,

    /// Time limit of a job: seconds, a duration such as 10m, or a share of the median such as 300%
    #[arg(long, value_name = "LIMIT", value_parser = parse_limit, help_heading = "Failures")]
    pub(crate) timeout: Option<Limit>,

    /// Number of additional attempts for a failed job
    #[arg(long, value_name = "N", default_value = "0", value_parser = parse_number::<u32>, allow_negative_numbers = true, help_heading = "Failures")]
    pub(crate) retries: u32,

    /// Make additional attempts only for jobs that exceeded their time limit
    #[arg(long, help_heading = "Failures")]
    pub(crate) retry_only_timeouts: bool,

    /// Pause before another attempt: seconds, or a duration; doubles up to a minute. See the manual
    /// for ,factor=N ,max=DURATION and ,jitter=SHARE
    #[arg(long, value_name = "DURATION", value_parser = parse_retry, help_heading = "Failures")]
    pub(crate) retry_delay: Option<Retry>,

    /// Stop early: now or soon, then fail, success or done = N or N%, such as now,fail=1
    #[arg(long, value_name = "POLICY", value_parser = HaltParser, hide_possible_values = true, help_heading = "Failures")]
    pub(crate) halt: Option<HaltPolicy>,

    /// Minimum time between two starts: seconds, or a duration such as 1m30s
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, allow_negative_numbers = true, help_heading = "Failures")]
    pub(crate) delay: Option<Duration>,

    /// Shell command that must succeed before any job starts
    #[arg(long, value_name = "COMMAND", help_heading = "Failures")]
    pub(crate) canary: Option<String>,

    /// Time limit of the canary: seconds, or a duration
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_seconds, help_heading = "Failures")]
    pub(crate) canary_timeout: Duration,

    /// Log finished jobs to FILE, in GNU parallel's format
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Results")]
    pub(crate) joblog: Option<PathBuf>,

    /// Skip jobs that the log records as successful
    #[arg(long, requires = "joblog", help_heading = "Results")]
    pub(crate) resume: bool,

    /// Same as --resume, for compatibility with GNU parallel
    #[arg(long, requires = "joblog", help_heading = "Results")]
    pub(crate) resume_failed: bool,

    /// Run the commands again that have failed according to the log; no list is needed
    #[arg(long, requires = "joblog", conflicts_with_all = ["file", "command", "resume", "resume_failed"], help_heading = "Results")]
    pub(crate) retry_failed: bool,

    /// Store outputs: in files under the directory NAME; with replacement strings in the files
    /// NAME, NAME.err and NAME.seq; or as rows of a table that ends in .csv, .tsv or .jsonl
    #[arg(long, value_name = "NAME", value_hint = ValueHint::AnyPath, help_heading = "Results")]
    pub(crate) results: Option<PathBuf>,

    /// Write an HTML page about the run: timeline, failures, a table of all jobs
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Results")]
    pub(crate) report: Option<PathBuf>,

    /// Write a trace for Perfetto (ui.perfetto.dev)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Results")]
    pub(crate) trace: Option<PathBuf>,

    /// Print outputs in the order of the jobs
    #[arg(short, long, help_heading = "Output")]
    pub(crate) keep_order: bool,

    /// Print lines as they arrive instead of each job's output at its end
    #[arg(long, aliases = ["lb", "linebuffer"], conflicts_with = "keep_order", help_heading = "Output")]
    pub(crate) line_buffer: bool,

    /// Print events as JSON lines instead of outputs
    #[arg(long, conflicts_with_all = ["tag", "keep_order", "line_buffer"], help_heading = "Output")]
    pub(crate) json: bool,

    /// Show progress even without a terminal, as plain lines
    #[arg(long, overrides_with = "no_bar", help_heading = "Output")]
    pub(crate) bar: bool,

    /// Serve a live view of the run at ADDRESS, such as 127.0.0.1:8080 or 8080: a page for
    /// browsers, which `brigade top` shows in a terminal. Only this machine can reach it
    #[arg(long, value_name = "ADDRESS", help_heading = "Output")]
    pub(crate) status: Option<String>,

    /// Show no progress, even on a terminal
    #[arg(long, help_heading = "Output")]
    pub(crate) no_bar: bool,

    /// Same as --bar, for compatibility with GNU parallel
    #[arg(long, alias = "progress", help_heading = "Output")]
    pub(crate) eta: bool,

    /// Options of GNU parallel that ask for what is done anyway; scripts have them
    #[arg(long = "group", aliases = ["will-cite", "no-notice", "silent"], hide = true)]
    pub(crate) changes_nothing: bool,

    /// Print the commands without running them
    #[arg(long, alias = "dryrun", help_heading = "Output")]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) printed: OutputOptions,

    #[command(flatten)]
    pub(crate) on_cluster: ClusterRunOptions,

    /// The shell that runs all commands of `brigade parallel`, even those of plain words.
    #[arg(skip)]
    pub(crate) gnu_shell: Option<OsString>,
}

impl Run {
    /// Returns `true` for what `brigade parallel` does, for which there are no options:
    ///
    /// * Without a command, the arguments are the commands.
    /// * Outputs that are stored by `--results` are not printed, and a name that ends in `.jsonl`
    ///   is a directory.
    /// * Jobs in a log are recognized by their numbers alone, and `--resume` skips failed ones.
    /// * Neither failed jobs nor the end of the run are reported, unless progress is shown.
    /// * The exit status of a run that a halt policy has ended is that of GNU parallel.
    pub(crate) fn is_gnu(&self) -> bool {
        self.gnu_shell.is_some()
    }

    /// Returns `true` if the jobs run on a cluster.
    pub(crate) fn is_remote(&self) -> bool {
        self.on_cluster.cluster.is_some()
    }
}

/// The policy for choosing the cores of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CorePolicy {
    /// Neighboring hardware threads
    #[default]
    Contiguous,
    /// As few memory nodes and caches as possible
    Compact,
    /// Far apart, for the most memory bandwidth and cache
    Scatter,
    /// Whole cores, using all of their hardware threads
    WholeCores,
    /// Whole cores, using one hardware thread of each
    OneThread,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn no_error_about_a_value_is_in_the_words_of_the_compiler() {
        let mut command = Arguments::command();
        command.build();
        let run = command.find_subcommand("run").expect("defined");
        for option in run.get_arguments().filter_map(clap::Arg::get_long) {
            let value = format!("--{option}=\u{1}");
            let parsed = Arguments::try_parse_from(["brigade", "run", &value, "--", "true"]);
            let error = parsed.map_or_else(|error| error.to_string(), |_| String::new());
            assert!(!error.contains("found in string"), "{option}: {error}");
        }
    }

    #[test]
    fn the_options_do_not_contradict_each_other() {
        Arguments::command().debug_assert();
    }
}
