//! The options of a run on a cluster.

use std::num::NonZeroUsize;

use clap::{Args, ValueHint};

use super::connection::LoginOptions;
use super::values::parse_count;

/// The options of a run on a cluster.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterRunOptions {
    /// Run the jobs on the nodes of a cluster that were started with `brigade node
    /// --allow-commands`. URL has the addresses of the NATS servers, separated by commas
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) cluster: Option<String>,

    /// Name of the queue [default: default]
    #[arg(long, requires = "cluster", value_name = "NAME")]
    pub(crate) queue: Option<String>,

    /// Number of servers that store each message of the queue, if this run creates it: 3 to survive
    /// the loss of one [default: 1]
    #[arg(long, requires = "cluster", value_name = "N", value_parser = parse_count)]
    pub(crate) replicas: Option<NonZeroUsize>,

    /// Run the jobs only on nodes with this label, such as gpu; may be repeated
    #[arg(long = "label", requires = "cluster", value_name = "LABEL")]
    pub(crate) labels: Vec<String>,

    /// Name of the batch. A run with the name of an earlier one collects the outcomes that are
    /// recorded, and runs nothing twice [default: with --joblog, in the log; else random]
    #[arg(long, requires = "cluster", value_name = "NAME")]
    pub(crate) batch: Option<String>,

    #[command(flatten)]
    pub(crate) login: LoginOptions,
}
