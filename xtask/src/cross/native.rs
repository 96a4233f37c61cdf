//! Targets that this processor can run itself, or that are only checked.

use super::executables::{self, built};
use super::toolchain::{self, Toolchain};
use super::{Counts, Stopped, target};
use crate::invocation::Invocation;

/// The crates whose tests run with musl: all but those that compile C++, or need a server.
const WITH_MUSL: [&str; 16] = [
    "codec",
    "cores",
    "crash",
    "ids",
    "integration",
    "link-ipc",
    "metrics",
    "pool",
    "sandbox",
    "scheduler",
    "supervisor",
    "sys",
    "task",
    "time",
    "timer",
    "wire",
];

/// Tests of what static programs do not have.
const LEFT_OUT_WITH_MUSL: [(&str, &str); 1] =
    [("a_function_of_a_shared_library_is_refused", "a static program has none")];

pub(super) fn run_musl() -> Result<Vec<Counts>, Stopped> {
    let toolchain = toolchain::musl().map_err(Stopped::LeftOut)?;
    let names = WITH_MUSL.map(|name| format!("-p brigade-{name}")).join(" ");
    let build = format!("test {names} --lib --bins --tests --no-run --message-format json");
    let executables = built(&toolchain.cargo(&build).output().map_err(Stopped::Failed)?);
    let place = "x86_64 with musl, static".to_owned();
    let mut counts = Counts { place, ..Counts::default() };
    for executable in executables.iter().filter(|executable| executable.is_test) {
        let skips = LEFT_OUT_WITH_MUSL.iter().flat_map(|(pattern, _)| ["--skip", pattern]);
        let test = Invocation::program(&executable.path)
            .arguments(["--test-threads", "2"].into_iter().chain(skips).map(str::to_owned))
            .folder(&executable.package);
        let (output, has_succeeded) = test.tested().map_err(Stopped::Failed)?;
        let before = counts.failed.len();
        executables::count(&mut counts, &executable.name(), &output, has_succeeded);
        if counts.failed.len() > before {
            println!("{output}");
        }
    }
    counts.left_out.extend(LEFT_OUT_WITH_MUSL);
    Ok(vec![counts])
}

/// Checks the facade. No emulator runs it: nobody has asked for more.
pub(super) fn check_riscv64() -> Result<Vec<Counts>, Stopped> {
    let toolchain = Toolchain::new(target::RISCV64, false).map_err(Stopped::LeftOut)?;
    let check =
        toolchain.cargo("check -p brigade --features ipc,cores,timer,sandbox,metrics,status");
    check.run().map_err(Stopped::Failed)?;
    Ok(vec![Counts { place: "riscv64, compiled".to_owned(), passed: 1, ..Counts::default() }])
}
