//! The options of each job: its shell, directory, variables and tag.

use std::ffi::OsString;

use clap::{Args, ValueHint};

/// The options of each job.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct JobOptions {
    /// Run each job in DIR, which is created if it does not exist; may contain replacement strings
    #[arg(
        long,
        alias = "workdir",
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        requires = "command",
        help_heading = "Input"
    )]
    pub(crate) wd: Option<OsString>,

    /// Set a variable for each job: NAME=VALUE, where VALUE may contain replacement strings. Jobs
    /// inherit all other variables
    #[arg(long, value_name = "NAME=VALUE", requires = "command", help_heading = "Input")]
    pub(crate) env: Vec<String>,

    /// Prefix each line of output with the job's arguments
    #[arg(long, help_heading = "Output")]
    pub(crate) tag: bool,

    /// Prefix each line of output with STR, which may contain replacement strings
    #[arg(long, alias = "tag-string", value_name = "STR", help_heading = "Output")]
    pub(crate) tagstring: Option<String>,

    /// Same as --tag, in a color for each job if standard output is a terminal
    #[arg(long, help_heading = "Output")]
    pub(crate) ctag: bool,

    /// Same as --tagstring, in a color for each job if standard output is a terminal
    #[arg(long, value_name = "STR", help_heading = "Output")]
    pub(crate) ctagstring: Option<String>,
}
