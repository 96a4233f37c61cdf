//! `cargo xtask bench`: builds the program `compare` of benches and runs it with the same
//! arguments.

use std::process::ExitCode;

use crate::invocation::Invocation;

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    // Build separately, so that a failed build is not mistaken for a failed measurement.
    Invocation::cargo("build --release -p brigade-benches --bin compare").run()?;
    Invocation::cargo("run --quiet --release -p brigade-benches --bin compare --")
        .arguments(arguments.iter().cloned())
        .run()?;
    Ok(ExitCode::SUCCESS)
}
