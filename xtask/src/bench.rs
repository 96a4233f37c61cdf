//! `cargo xtask bench`: builds and runs the program `compare` of benches, which takes turns with the peers.

use std::process::ExitCode;

use crate::invocation::Invocation;

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    Invocation::cargo("run --quiet --release -p brigade-benches --bin compare --")
        .arguments(arguments.iter().cloned())
        .run()?;
    Ok(ExitCode::SUCCESS)
}
