//! The differences between `brigade parallel` and `brigade run` that are no options.

use std::ffi::OsString;

/// Decisions for which there are no options. The default is that of `brigade run`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dialect {
    /// The shell that runs all commands of `brigade parallel`, even those of plain words.
    pub(crate) shell: Option<OsString>,
    /// `true` if neither failed jobs nor the end of the run are reported, unless progress is shown.
    pub(crate) is_quiet: bool,
}

impl Dialect {
    /// Returns `true` for what `brigade parallel` does:
    ///
    /// * Without a command, the arguments are the commands.
    /// * Outputs that are stored by `--results` are not printed, and a name that ends in `.jsonl`
    ///   is a directory.
    /// * Jobs in a log are recognized by their numbers alone, and `--resume` skips failed ones.
    /// * The exit status of a run that a halt policy has ended is that of GNU parallel.
    pub(crate) fn is_gnu(&self) -> bool {
        self.shell.is_some()
    }
}
