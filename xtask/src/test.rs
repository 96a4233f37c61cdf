//! `cargo xtask test`: everything that must pass, cheapest first.
//!
//! One profile (dev) and one target folder, so that nothing is built twice; only loom and
//! asan need builds of their own, because their flags would otherwise invalidate everything else. From a clean clone
//! this must stay under ten minutes on two cores.

use std::process::ExitCode;

use crate::invocation::Invocation;
use crate::seeded::{self, FUZZ, STRESS};
use crate::step::{self, Step};
use crate::{asan, loom, tidy};

/// Where `test` and `ci` differ.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    /// Added to every cargo command that resolves dependencies.
    pub(crate) resolution: &'static str,
    /// The profile in .config/nextest.toml.
    pub(crate) nextest_profile: &'static str,
    pub(crate) stress_seconds: u32,
    pub(crate) fuzz_rounds: u32,
}

/// Random events that the pool's state machine is played with; each is checked against a model.
const MACHINE_STEPS: &str = "1000000";

/// Stops at the first failed test, and takes a changed Cargo.toml as it is.
const AT_HOME: Settings =
    Settings { resolution: "", nextest_profile: "default", stress_seconds: 10, fuzz_rounds: 6 };

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    run_with("test", arguments, AT_HOME)
}

pub(crate) fn run_with(
    command: &str,
    arguments: &[String],
    settings: Settings,
) -> Result<ExitCode, String> {
    if !arguments.is_empty() {
        return Err(format!("`cargo xtask {command}` takes no arguments"));
    }
    let nextest = Invocation::cargo("nextest --version").succeeds();
    if !nextest {
        println!(
            "cargo-nextest is not installed: `cargo test` is used, which has no time limit for a \
             test"
        );
    }
    Ok(step::run_all(&plan(settings, nextest)))
}

fn plan(settings: Settings, nextest: bool) -> Vec<Step> {
    let Settings { resolution, nextest_profile, stress_seconds, fuzz_rounds } = settings;
    let cargo = |arguments: &str, rest: &str| {
        Invocation::cargo(&format!("{arguments} {resolution} {rest}"))
    };
    let tests = if nextest {
        cargo("nextest run --workspace", &format!("--profile {nextest_profile}"))
    } else {
        cargo("test --workspace --lib --bins --tests", "")
    };
    // The suite above runs over the link that users get; what goes through a pool runs over the other one as well.
    let over_ipc = if nextest {
        cargo("nextest run -p brigade-integration", &format!("--profile {nextest_profile}"))
    } else {
        cargo("test -p brigade-integration --lib --bins --tests", "")
    };
    let over_ipc = over_ipc.variable("BRIGADE_LINK", "ipc");
    let documentation =
        cargo("doc --workspace --no-deps", "").variable("RUSTDOCFLAGS", "-D warnings");
    // The same test plays fewer steps among the others.
    let machine = cargo("test -p brigade-pool --lib", "any_play")
        .variable("BRIGADE_MACHINE_STEPS", MACHINE_STEPS);
    let stress_arguments = seeded::with_seed(&["--seconds".to_owned(), stress_seconds.to_string()]);
    // By turns over both links.
    let fuzz_arguments = seeded::with_seed(&["--rounds".to_owned(), fuzz_rounds.to_string()]);
    vec![
        Step::cargo("format", Invocation::cargo("fmt --all -- --check")),
        Step::new("tidy", "cargo xtask tidy", tidy::check),
        Step::cargo("clippy", cargo("clippy --workspace --all-targets", "-- -D warnings")),
        Step::cargo("tests", tests),
        Step::cargo("tests over ipc", over_ipc),
        Step::cargo("documentation tests", cargo("test --workspace --doc", "")),
        Step::cargo("documentation", documentation),
        Step::cargo("examples", cargo("build --workspace --examples", "")),
        Step::new("loom", "cargo xtask loom", loom::check),
        Step::new("asan", "cargo xtask asan", asan::check),
        Step::cargo("machine", machine),
        Step::new("stress", STRESS.repeat_line(&stress_arguments), move || {
            STRESS.check(&stress_arguments)
        }),
        Step::new("fuzz", FUZZ.repeat_line(&fuzz_arguments), move || FUZZ.check(&fuzz_arguments)),
    ]
}

#[cfg(test)]
mod tests {
    use super::{AT_HOME, Settings, plan};

    fn commands(settings: Settings, nextest: bool) -> Vec<String> {
        plan(settings, nextest).iter().map(|step| step.command().to_owned()).collect()
    }

    #[test]
    fn every_kind_of_check_is_in_the_plan() {
        let commands = commands(AT_HOME, true);
        for start in [
            "cargo fmt --all -- --check",
            "cargo xtask tidy",
            "cargo clippy --workspace --all-targets -- -D warnings",
            "cargo nextest run --workspace --profile default",
            "cargo test --workspace --doc",
            "RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps",
            "cargo build --workspace --examples",
            "cargo xtask loom",
            "cargo xtask asan",
            "BRIGADE_MACHINE_STEPS=1000000 cargo test -p brigade-pool --lib",
            "cargo xtask stress --seed ",
            "cargo xtask fuzz --seed ",
        ] {
            assert!(
                commands.iter().any(|command| command.starts_with(start)),
                "{start}: {commands:#?}"
            );
        }
    }

    #[test]
    fn without_nextest_the_same_tests_run() {
        let expected = "cargo test --workspace --lib --bins --tests".to_owned();
        assert!(commands(AT_HOME, false).contains(&expected));
    }

    #[test]
    fn nothing_is_built_in_a_second_profile() {
        let commands = commands(AT_HOME, true);
        assert!(!commands.iter().any(|command| command.contains("--release")), "{commands:#?}");
    }

    #[test]
    fn locked_resolution_reaches_every_step_that_resolves() {
        let locked = Settings { resolution: "--locked", ..AT_HOME };
        for command in commands(locked, true) {
            let resolves = !command.contains("xtask") && !command.contains("fmt");
            assert_eq!(command.contains("--locked"), resolves, "{command}");
        }
    }
}
