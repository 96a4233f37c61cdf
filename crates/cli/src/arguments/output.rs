//! The options of what is printed besides or instead of outputs.

use clap::Args;

/// The options of what is printed besides or instead of outputs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputOptions {
    /// Print each command before its output
    #[arg(short = 'v', conflicts_with = "json")]
    pub(crate) commands: bool,

    /// Print each command to standard error when it starts
    #[arg(short = 't', long)]
    pub(crate) verbose: bool,

    /// Let jobs write to the terminal or file themselves, without order
    #[arg(short, long, conflicts_with_all = ["keep_order", "tag", "line_buffer", "json", "results"])]
    pub(crate) ungroup: bool,
}
