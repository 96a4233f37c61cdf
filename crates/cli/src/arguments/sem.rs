//! The options of `brigade sem`.

use std::ffi::OsString;
use std::num::NonZeroUsize;

use clap::{Args, ValueHint};

use super::values::parse_count;

/// Run a command when it is its turn
///
/// At most N commands with the same name run at once; others wait. The place of a command is free
/// when the command has ended, however it ended. A link named `sem` does the same.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each option is a field of the same name")]
pub(crate) struct Sem {
    /// Number of commands that may run at once
    #[arg(short, long, visible_short_alias = 'P', value_name = "N", default_value = "1", value_parser = parse_count)]
    pub(crate) jobs: NonZeroUsize,

    /// Name that commands share which take turns
    #[arg(long, aliases = ["semaphore-name", "semaphorename"], value_name = "NAME", default_value = "default")]
    pub(crate) id: OsString,

    /// Wait for the end of the command, and exit with its status; without it, only until it starts
    #[arg(long)]
    pub(crate) fg: bool,

    /// Run the command in the background, which is the default
    #[arg(long, conflicts_with = "fg", hide = true)]
    pub(crate) bg: bool,

    /// Wait until all commands with this name have ended
    #[arg(long, conflicts_with = "command")]
    pub(crate) wait: bool,

    /// Wait no longer than this number of seconds, then run the command anyway; if the number is
    /// negative, exit with status 1 instead
    #[arg(long, aliases = ["semaphore-timeout", "semaphoretimeout"], value_name = "SECONDS", allow_negative_numbers = true)]
    pub(crate) st: Option<f64>,

    /// Standard input is the locked file: run the command at once
    #[arg(long, hide = true)]
    pub(crate) held: bool,

    /// Line for the shell
    #[arg(trailing_var_arg = true, value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}
