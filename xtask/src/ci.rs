//! `cargo xtask ci`: runs the steps of `test` with the settings for CI; `.ci/run` calls it.

use std::process::ExitCode;

use crate::invocation::Invocation;
use crate::test::{self, Settings};
use crate::tools::{NATS_SERVER, runs};

const IN_CI: Settings =
    Settings { resolution: "--locked", nextest_profile: "ci", stress_seconds: 20, fuzz_rounds: 12 };

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    install();
    test::run_with("ci", arguments, IN_CI)
}

/// Installs the server that the tests of clusters use. Where that is not possible, they are
/// reported as left out.
fn install() {
    if runs(NATS_SERVER) {
        return;
    }
    // Without a network, lists that are there may do.
    let _ = Invocation::apt_get("update").run();
    let install = format!("install --yes --no-install-recommends {NATS_SERVER}");
    if let Err(problem) = Invocation::apt_get(&install).run() {
        println!("could not install {NATS_SERVER}: {problem}");
    }
}
