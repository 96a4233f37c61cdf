//! The differences between `brigade parallel` and `brigade run` that are no options.

use std::ffi::OsString;

/// Decisions for which there are no options. The default is that of `brigade run`.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a decision of its own")]
pub(crate) struct Dialect {
    /// The shell that runs all commands, even those of plain words. Without a command, the
    /// arguments are the commands.
    pub(crate) shell: Option<OsString>,
    /// `true` if outputs that are stored by `--results` are not printed, and a name that ends in
    /// `.jsonl` is a directory.
    pub(crate) stores_as_parallel: bool,
    /// `true` if jobs in a log are recognized by their numbers alone, and `--resume` skips failed
    /// ones.
    pub(crate) resumes_numbers: bool,
    /// `true` if neither failed jobs nor the end of the run are reported, unless progress is shown.
    pub(crate) is_quiet: bool,
    /// `true` if the exit status of a run that a halt policy has ended is that of GNU parallel.
    pub(crate) halts_as_parallel: bool,
}
