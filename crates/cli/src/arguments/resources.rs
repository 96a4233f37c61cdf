//! The options about resources that jobs share.

use brigade::Resource;
use clap::Args;

use super::values::parse_resource;

/// The resources of a run, and what a job takes of them.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ResourceOptions {
    /// Declare a resource of which jobs take what they need: a number of pieces such as gpu=4, or
    /// an amount such as memory=16G; may be repeated
    #[arg(long, value_name = "NAME=AMOUNT", value_parser = parse_resource, help_heading = "Cores")]
    pub(crate) resource: Vec<(String, Resource)>,

    /// Amount of a resource that a job takes while it runs, such as gpu=1 or memory=2G; may be
    /// repeated. A variable of its environment has the numbers of its pieces, or the amount
    #[arg(long, value_name = "NAME=AMOUNT", value_parser = parse_resource, help_heading = "Cores")]
    pub(crate) needs: Vec<(String, Resource)>,
}
