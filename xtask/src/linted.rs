//! The build of the tests, by clippy's driver: it lints what it compiles. What is compiled with its
//! tests too is linted there only.

use std::num::NonZero;
use std::path::PathBuf;
use std::thread::available_parallelism;

use crate::checkout::{root, target_folder};
use crate::invocation::Invocation;

/// Returns a call of cargo that compiles with clippy's driver, which lints the workspace on the
/// way. A warning is an error.
pub(crate) fn linted(arguments: &str) -> Invocation {
    // An environment variable instead of the option would also be one of the tests, some of which
    // run cargo.
    Invocation::cargo(arguments).wrapped("lint.sh").variable("CLIPPY_ARGS", "-Dwarnings")
}

/// Returns a call of cargo that runs examples of documentation, and looks for faults in it.
pub(crate) fn documented(arguments: &str) -> Invocation {
    let rustdoc = root().join("xtask/rustdoc.sh");
    linted(arguments).variable("RUSTDOC", &rustdoc.display().to_string())
}

/// Returns a run of those tests that a filter of nextest selects, with a build that was made. They
/// wait more than they compute, so more of them run at once than there are cores.
pub(crate) fn selected(settings_of_nextest: &str, filter: &str) -> Invocation {
    let threads = available_parallelism().map_or(1, NonZero::get).max(5);
    let run = format!("nextest run {settings_of_nextest} --test-threads {threads}");
    // Otherwise another process starts each test, which only matters to those who suspend it.
    let run = linted(&run).variable("NEXTEST_DOUBLE_SPAWN", "0");
    let filter = (!filter.is_empty()).then(|| ["-E".to_owned(), filter.to_owned()]);
    run.arguments(filter.into_iter().flatten())
}

/// Returns the folder of what a run leaves behind: its table, and the output of builds.
pub(crate) fn folder() -> PathBuf {
    target_folder().join("checks")
}
