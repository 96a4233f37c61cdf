//! The options of `brigade node` and `brigade cluster`.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::time::Duration;

use brigade::Resource;
use clap::{Args, Subcommand, ValueHint};

use super::confine::SandboxOptions;
use super::connection::LoginOptions;
use super::values::{parse_count, parse_number, parse_resource, parse_seconds, parse_size};

const SIGNALS: &str = "\
On SIGTERM or SIGINT the node finishes what runs, hands back what has not begun, and ends; on a
second signal it kills what runs.

Environment: NATS_URL, NATS_CREDS, NATS_TOKEN, NATS_USER, NATS_PASSWORD, NATS_CA, NATS_CERT and
NATS_KEY, for what the options do not say; BRIGADE_LOG (what to report, such as info or
brigade_cluster=debug)";

/// Run the tasks of a cluster on this machine
///
/// COMMAND is a program whose main runs a `brigade::worker::Server`; it is started once for each
/// worker. The node takes the tasks whose functions it has registered. With --allow-commands
/// instead, it takes the jobs of `brigade run --cluster`.
#[derive(Debug, Args)]
#[command(after_help = SIGNALS)]
pub(crate) struct Node {
    /// Addresses of the NATS servers, separated by commas [default: `$NATS_URL`, or this machine]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) nats: Option<String>,

    /// Name of the queue
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) queue: String,

    /// Number of servers that store each message of the queue, if this node creates it: 3 to
    /// survive the loss of one [default: 1]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) replicas: Option<NonZeroUsize>,

    /// Report more of what happens; twice for still more
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Number of workers [default: the number of usable cores]
    #[arg(short, long, value_name = "N", value_parser = parse_count)]
    pub(crate) workers: Option<NonZeroUsize>,

    /// Pin each worker to this number of cores of its own, and take tasks that need as many
    #[arg(short, long, value_name = "N", value_parser = parse_count)]
    pub(crate) cores: Option<NonZeroUsize>,

    /// Take tasks that need up to this amount of memory, in GiB
    #[arg(long, value_name = "GIB", value_parser = parse_number::<u32>)]
    pub(crate) memory: Option<u32>,

    #[command(flatten)]
    pub(crate) sandbox: SandboxOptions,

    /// End a task or a job that takes more memory than this, such as 512M or 2G
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Limits")]
    pub(crate) task_memory: Option<u64>,

    /// End a task or a job that computes longer than this, such as 5s or 2m
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, help_heading = "Limits")]
    pub(crate) task_cpu_time: Option<Duration>,

    /// Declare a resource of which tasks take what they need: a number of pieces such as gpu=4, or
    /// an amount such as memory=16G; may be repeated
    #[arg(long, value_name = "NAME=AMOUNT", value_parser = parse_resource)]
    pub(crate) resource: Vec<(String, Resource)>,

    /// Take tasks that need this label, such as gpu; may be repeated
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Vec<String>,

    /// Serve a live view of the workers at this loopback address, such as 127.0.0.1:8080: a page,
    /// and /metrics for Prometheus with the name of the node
    #[arg(long, value_name = "ADDRESS", value_hint = ValueHint::Other)]
    pub(crate) status: Option<String>,

    /// Name of the node, which must be unique [default: host name, process id and a random number]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Run the jobs of `brigade run --cluster`, instead of a worker program. Whoever may publish to
    /// the queue can then run any command as the user of the node
    #[arg(long, conflicts_with = "command")]
    pub(crate) allow_commands: bool,

    /// Worker program with its arguments
    #[arg(last = true, required_unless_present = "allow_commands", value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,

    #[command(flatten)]
    pub(crate) login: LoginOptions,
}

/// Look at a cluster
#[derive(Debug, Subcommand)]
pub(crate) enum Cluster {
    /// Show the queue and the nodes that answer within a second
    Status(Status),
    /// Show the tasks that were given up, and submit them again or remove them
    ///
    /// ITEM is a batch and an item, as the list shows them, such as nightly/item-7, or `all`.
    Dead(Dead),
}

impl Cluster {
    /// Returns the number of `-v`.
    pub(crate) fn verbosity(&self) -> u8 {
        match self {
            Self::Status(options) => options.address.verbose,
            Self::Dead(options) => options.address.verbose,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct QueueAddress {
    #[command(flatten)]
    pub(crate) login: LoginOptions,

    /// Report more of what happens; twice for still more
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Addresses of the NATS servers, separated by commas [default: `$NATS_URL`, or this machine]
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: Option<String>,

    /// Name of the queue
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) queue: String,
}

#[derive(Debug, Args)]
pub(crate) struct Dead {
    #[command(flatten)]
    pub(crate) address: QueueAddress,

    /// Print one JSON object a line, for programs
    #[arg(long)]
    pub(crate) json: bool,

    /// Submit a task again, with its history forgotten; may be repeated
    #[arg(long, value_name = "ITEM")]
    pub(crate) requeue: Vec<String>,

    /// Remove a dead letter; its outcome stays; may be repeated
    #[arg(long, value_name = "ITEM", conflicts_with = "requeue")]
    pub(crate) remove: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) address: QueueAddress,

    /// Print JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}
