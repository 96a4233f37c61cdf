//! Targets that this processor can run itself, or that are only checked.

use std::path::Path;

use super::executables::{self, Executable, built};
use super::toolchain::{self, Toolchain};
use super::{Counts, Stopped, folder, target};
use crate::invocation::Invocation;

/// The crates whose tests run with musl: all but those that compile C++, or need a server.
const WITH_MUSL: [&str; 15] = [
    "base",
    "codec",
    "cores",
    "crash",
    "integration",
    "link-ipc",
    "metrics",
    "pool",
    "sandbox",
    "scheduler",
    "supervisor",
    "sys",
    "task",
    "timer",
    "wire",
];

/// Tests that do not hold in a static program with musl. The name of a test follows that of its
/// executable.
const LEFT_OUT: [(&str, &str); 13] = [
    ("pool: ui::", "it runs the compiler without the options of this build"),
    ("processes: forked::", "workers are executed with musl, and not forked"),
    ("brigade_sys: sibling::", "as above"),
    ("processes: fresh::a_worker_ends_as_its_copy_does", "as above"),
    ("memory: shared_memory::a_worker_killed_at_any_moment_of", "as above"),
    ("pool: slots::a_replacement_and_a_spare_worker", "as above"),
    ("pool: slots::each_worker_has_the_variables_of_its_slot", "as above"),
    ("pool: slots::what_all_workers_share", "as above"),
    (
        "without_init: started::",
        "it is about the loader, libraries and debuggers of programs with glibc",
    ),
    ("processes: crashes::", "the functions of musl have no unwind tables"),
    (
        "processes: fresh::tasks_that_take_too_long_are_killed",
        "as above, so its stack has one function",
    ),
    ("sample: ", "as above"),
    ("early: a_function_is_found_in_another_process", "musl has no arguments before `main`"),
];

pub(super) fn run_musl() -> Result<Vec<Counts>, Stopped> {
    let toolchain = toolchain::musl().map_err(Stopped::LeftOut)?;
    let names = WITH_MUSL.map(|name| format!("-p brigade-{name}")).join(" ");
    let build = format!("test {names} --tests --no-run --message-format json");
    let executables = built(&toolchain.cargo(&build).output().map_err(Stopped::Failed)?);
    let place = "x86_64 with musl, static".to_owned();
    let mut counts = Counts { place, ..Counts::default() };
    for executable in executables.iter().filter(|executable| executable.is_test) {
        run_tests(executable, &mut counts).map_err(Stopped::Failed)?;
    }
    counts.left_out.extend(LEFT_OUT);
    Ok(vec![counts])
}

/// Runs the tests of an executable, those of integration each in a process of its own: some end
/// theirs, or look at all that is in it.
fn run_tests(executable: &Executable, counts: &mut Counts) -> Result<(), String> {
    let name = executable.name();
    let call = |arguments: Vec<String>| {
        let path = executable.path.display().to_string();
        Invocation::program(Path::new("timeout"))
            .arguments([LIMIT.to_owned(), path].into_iter().chain(arguments))
            .folder(&executable.package)
    };
    let skipped = executables::left_out(&LEFT_OUT, &name).flat_map(|pattern| ["--skip", pattern]);
    let together = ["--test-threads", "2"].into_iter().chain(skipped).map(str::to_owned);
    let mut calls = vec![call(together.collect())];
    if executable.package.ends_with("integration") {
        let (list, _) = call(vec!["--list".to_owned()]).tested()?;
        let left_out: Vec<&str> = executables::left_out(&LEFT_OUT, &name).collect();
        let is_left_out = |test: &str| left_out.iter().any(|pattern| test.contains(pattern));
        let tests = list.lines().filter_map(|line| line.strip_suffix(": test"));
        let tests = tests.filter(|test| !is_left_out(test));
        calls = tests.map(|test| call(vec!["--exact".to_owned(), test.to_owned()])).collect();
    }
    for test in calls {
        let (output, has_succeeded) = test.tested()?;
        let before = counts.failed.len();
        executables::count(counts, &name, &output, has_succeeded);
        if counts.failed.len() > before {
            println!("{test}\n{output}");
        }
    }
    Ok(())
}

/// Seconds for the tests of one executable.
const LIMIT: &str = "900";

/// Features that need no C compiler for the target.
pub(super) const FEATURES: &str = "ipc,cores,timer,sandbox,metrics,status";

/// Checks the facade; no emulator runs it.
pub(super) fn check_riscv64() -> Result<Vec<Counts>, Stopped> {
    let toolchain = Toolchain::new(target::RISCV64, false).map_err(Stopped::LeftOut)?;
    let check = toolchain.cargo(&format!("check -p brigade --features {FEATURES}"));
    check.run().map_err(Stopped::Failed)?;
    Ok(vec![Counts { place: "riscv64, compiled".to_owned(), passed: 1, ..Counts::default() }])
}

/// Runs a pool of threads without the system calls of Linux, as on other systems.
pub(super) fn run_threads() -> Result<Vec<Counts>, Stopped> {
    let run = "run --quiet -p brigade --no-default-features --example in_process --locked";
    let folder = folder().map_err(Stopped::Failed)?.join("threads");
    let run = Invocation::cargo(run)
        .variable("RUSTFLAGS", "--cfg brigade_elsewhere")
        .variable("CARGO_TARGET_DIR", &folder.display().to_string());
    let (printed, has_succeeded) = run.tested().map_err(Stopped::Failed)?;
    println!("{printed}");
    let place = "threads, without the system calls of Linux".to_owned();
    let mut counts = Counts { place, passed: 1, ..Counts::default() };
    if !has_succeeded || !printed.ends_with(LAST_LINE) {
        counts.passed = 0;
        counts.failed.push("the example in_process".to_owned());
    }
    Ok(vec![counts])
}

/// The last line of the example: the pool has survived a panic and a task that hangs.
const LAST_LINE: &str = "and the pool goes on: 2\n";

/// Checks that the facade compiles for other systems, and that 32-bit targets get one clear error.
pub(super) fn check_elsewhere() -> Result<Vec<Counts>, Stopped> {
    let mut counts = Counts { place: "other systems, compiled".to_owned(), ..Counts::default() };
    for system in target::ELSEWHERE {
        let toolchain = Toolchain::new(system, false).map_err(Stopped::LeftOut)?;
        let check = toolchain.cargo(&format!("check --quiet -p brigade --features {FEATURES}"));
        println!("{check}");
        match check.run() {
            Ok(()) => counts.passed += 1,
            Err(_) => counts.failed.push(system.to_owned()),
        }
    }
    let toolchain = Toolchain::new(target::OF_32_BITS, false).map_err(Stopped::LeftOut)?;
    let check = toolchain.cargo("check --quiet -p brigade --message-format short");
    let (printed, _) = check.tested().map_err(Stopped::Failed)?;
    let errors: Vec<&str> = printed.lines().filter(|line| line.contains(": error")).collect();
    if matches!(errors[..], [only] if only.contains("needs 64-bit addresses")) {
        counts.passed += 1;
    } else {
        println!("{printed}");
        counts.failed.push(format!("{}: not one clear error", target::OF_32_BITS));
    }
    Ok(vec![counts])
}
