//! The plans of `test` and `ci`, with all tools and without.

use super::{JOBS, Settings, jobs_of, missing, only_in_ci, plan};
use crate::step::Step;
use crate::tools::Tools;

const HERE: Settings = Settings { everything: false, resolution: "", profile: "default" };
const IN_CI: Settings = Settings { everything: true, resolution: "--locked", profile: "ci" };

fn all_tools() -> Tools {
    Tools {
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
        msrv: Some("1.88-x86_64-unknown-linux-gnu".to_owned()),
    }
}

fn commands(settings: &Settings, tools: &Tools) -> Vec<String> {
    plan(settings, tools).into_iter().map(|step| step.command).collect()
}

#[test]
fn the_plan_contains_every_kind_of_check() {
    let commands = commands(&HERE, &all_tools());
    for part in [
        "cargo fmt --all -- --check",
        "cargo xtask tidy",
        "cargo tree",
        "cargo package",
        "CLIPPY_ARGS=-Dwarnings cargo test --workspace --exclude brigade-benches",
        "--profile default",
        "NEXTEST_DOUBLE_SPAWN=0",
        "/xtask/rustdoc.sh cargo test --workspace --exclude",
        "cargo xtask escape",
        "cargo xtask stress --seed ",
        "cargo xtask fuzz --seed ",
        "--hostile --rounds",
    ] {
        assert!(commands.iter().any(|it| it.contains(part)), "{part}: {commands:#?}");
    }
}

#[test]
fn ci_runs_everything_and_says_what_test_leaves_out() {
    let left_out = only_in_ci(&HERE, &all_tools());
    let names: Vec<&str> = left_out.iter().map(|it| it.name.as_str()).collect();
    for name in [
        "asan",
        "loom",
        "all tests over ipc",
        "all tests in a sandbox",
        "clusters, current server",
        "C libraries in a sandbox",
        "crashes",
        "dependencies",
        "minimum Rust version",
        "musl",
        "other targets",
        " sets of features",
    ] {
        assert!(names.iter().any(|it| it.ends_with(name)), "{name}: {names:#?}");
    }
    assert!(
        commands(&IN_CI, &all_tools())
            .iter()
            .any(|it| it.contains("brigade --locked --no-default-features --features= "))
    );
    let in_ci = plan(&IN_CI, &all_tools());
    for step in plan(&HERE, &all_tools()) {
        assert!(in_ci.iter().any(|it| it.name == step.name), "{}", step.name);
    }
}

#[test]
fn every_job_has_steps() {
    let steps = jobs_of(&IN_CI, &all_tools());
    for job in JOBS {
        assert!(steps.iter().any(|(it, _)| *it == job), "{job}");
    }
    assert!(steps.iter().all(|(job, _)| JOBS.contains(job)));
}

#[test]
fn a_missing_tool_is_named() {
    assert!(missing(&IN_CI, &all_tools()).is_empty());
    for (settings, count) in [(&HERE, 5), (&IN_CI, 10)] {
        let missing = missing(settings, &Tools::default());
        assert_eq!(missing.len(), count, "{missing:#?}");
    }
}

#[test]
fn no_two_steps_have_the_same_name() {
    let mut names: Vec<String> =
        plan(&IN_CI, &all_tools()).into_iter().map(|step: Step| step.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count, "{names:#?}");
}

#[test]
fn the_same_tests_run_without_nextest() {
    let expected = "--exclude brigade-integration --tests";
    let commands = commands(&HERE, &Tools::default());
    assert!(commands.iter().any(|it| it.contains(expected)), "{commands:#?}");
}

#[test]
fn every_step_that_resolves_dependencies_is_locked() {
    for command in commands(&IN_CI, &all_tools()) {
        let resolves = !["cargo xtask", "fmt", "-p xtask"].iter().any(|it| command.contains(it));
        assert_eq!(command.contains("--locked"), resolves, "{command}");
    }
}
