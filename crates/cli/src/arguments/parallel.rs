//! The options of `brigade parallel`: those of `brigade run`, and some of GNU parallel's own.

use std::ffi::OsString;

use clap::Args;

use super::Run;
use super::values::parse_number;

/// Run commands as GNU parallel does
///
/// Takes the command line of GNU parallel: commands run in the user's shell, duplicates run,
/// `--retries` counts attempts, jobs are not pinned. `$PARALLEL`, `~/.parallel/config` and profiles
/// have default options. A link named `parallel` does the same.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each option is a field of the same name")]
pub(crate) struct Parallel {
    #[command(flatten)]
    pub(crate) run: Run,

    /// Read options from ~/.parallel/PROFILE, or from a file whose path begins with / or ./
    #[arg(short = 'J', long, value_name = "PROFILE", help_heading = "Defaults")]
    pub(crate) profile: Vec<OsString>,

    /// Ignore profiles, $PARALLEL and ~/.parallel/config
    #[arg(long, help_heading = "Defaults")]
    pub(crate) plain: bool,

    /// Print outputs as jobs finish, despite --keep-order in the defaults
    #[arg(long, overrides_with = "keep_order", help_heading = "Output")]
    pub(crate) no_keep_order: bool,

    /// Exit with status 0 if GNU parallel's version VERSION or an older one is enough
    #[arg(long, value_name = "VERSION", value_parser = parse_number::<u32>, hide = true)]
    pub(crate) minversion: Option<u32>,

    /// Print the number of usable hardware threads
    #[arg(long, aliases = ["number-of-cores", "number-of-cpus"], hide = true)]
    pub(crate) number_of_threads: bool,

    /// Options of GNU parallel without a meaning here; scripts have them
    #[arg(long = "gnu", aliases = ["citation", "bibtex", "tollef", "noswap", "compress", "willcite", "nonotice"], hide = true)]
    pub(crate) means_nothing: bool,

    /// A compression of temporary files, of which there are none
    #[arg(long, aliases = ["decompress-program"], value_name = "PROGRAM", hide = true)]
    pub(crate) compress_program: Option<OsString>,
}
