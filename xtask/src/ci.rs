//! `cargo xtask ci`: runs the steps of `test` with the settings for CI; `.ci/run` calls it.

use std::process::ExitCode;

use crate::test::{self, Settings};

const IN_CI: Settings =
    Settings { resolution: "--locked", nextest_profile: "ci", stress_seconds: 20, fuzz_rounds: 12 };

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    test::run_with("ci", arguments, IN_CI)
}
