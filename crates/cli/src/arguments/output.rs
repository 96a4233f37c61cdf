//! The options of what is printed besides or instead of outputs.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// The options of what is printed besides or instead of outputs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
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

    /// Print only the last line of each job's output. On a terminal, the progress shows the latest
    /// one of each running job
    #[arg(long, alias = "ll", conflicts_with_all = ["ungroup", "line_buffer", "json", "files"])]
    pub(crate) latest_line: bool,

    /// Store standard output in files, and print their names instead; nothing removes the files
    #[arg(long, conflicts_with_all = ["ungroup", "line_buffer", "json"])]
    pub(crate) files: bool,

    /// Directory for temporary files: those of --files, and of outputs that wait to be printed
    /// [default: $TMPDIR, else /tmp]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) tmpdir: Option<PathBuf>,
}
