//! The options of argument lists: how they are read, combined and shared out among jobs.

use clap::Args;

/// The options of argument lists.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Argument lists")]
pub(crate) struct ListOptions {
    /// Link all lists instead of combining them: the first arguments of all, the second ones, and
    /// so on. Shorter lists start again
    #[arg(long, alias = "xapply", requires = "command")]
    pub(crate) link: bool,
}
