//! `cargo xtask cross`: builds and runs the tests for other processors and C libraries, with
//! Debian's packages and nothing else. docs/platforms.md has the table.
//!
//! Parts that this machine cannot run are left out with the reason. `--brief` chooses those that
//! CI runs each time.

mod emulated;
mod executables;
mod machine;
mod native;
mod packages;
mod toolchain;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::checkout::{root, target_folder};
use crate::invocation::Invocation;
use crate::tools::runs;

/// The targets, as rustc names them.
mod target {
    pub(super) const AARCH64: &str = "aarch64-unknown-linux-gnu";
    pub(super) use crate::tools::MUSL;
    pub(super) const RISCV64: &str = "riscv64gc-unknown-linux-gnu";
    pub(super) const ELSEWHERE: [&str; 4] = [
        "aarch64-apple-darwin",
        "x86_64-apple-darwin",
        "x86_64-pc-windows-msvc",
        "x86_64-unknown-freebsd",
    ];
    pub(super) const OF_32_BITS: &str = "i686-unknown-linux-gnu";
}

/// A part of the check.
struct Part {
    name: &'static str,
    is_brief: bool,
    run: fn() -> Result<Vec<Counts>, Stopped>,
}

const PARTS: [Part; 7] = [
    Part { name: "aarch64", is_brief: true, run: emulated::run },
    Part { name: "riscv64", is_brief: true, run: native::check_riscv64 },
    Part { name: "threads", is_brief: true, run: native::run_threads },
    Part { name: "elsewhere", is_brief: false, run: native::check_elsewhere },
    Part { name: "musl", is_brief: false, run: native::run_musl },
    Part { name: "machine-4k", is_brief: false, run: machine::with_pages_of_4_kib },
    Part { name: "machine-16k", is_brief: false, run: machine::with_pages_of_16_kib },
];

/// The results of the tests of one build in one place.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    place: String,
    passed: usize,
    /// Names of tests and programs.
    failed: Vec<String>,
    /// Patterns of names, each with its reason.
    left_out: Vec<(&'static str, &'static str)>,
}

/// A part that did not come to its tests.
enum Stopped {
    /// This machine lacks something.
    LeftOut(String),
    Failed(String),
}

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let names = || PARTS.iter().map(|part| part.name).collect::<Vec<_>>().join("|");
    let is_known = |argument: &String| PARTS.iter().any(|part| part.name == argument);
    let chosen: Vec<&Part> = match arguments {
        [] => PARTS.iter().collect(),
        [only] if only == "--brief" => PARTS.iter().filter(|part| part.is_brief).collect(),
        some if some.iter().all(is_known) => {
            PARTS.iter().filter(|part| some.iter().any(|name| name == part.name)).collect()
        }
        _ => return Err(format!("usage: cargo xtask cross [--brief | {} ...]", names())),
    };
    let is_good = run_parts(&chosen);
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the brief parts.
pub(crate) fn check() -> Result<(), String> {
    let brief: Vec<&Part> = PARTS.iter().filter(|part| part.is_brief).collect();
    if run_parts(&brief) { Ok(()) } else { Err("tests of other targets failed".to_owned()) }
}

/// Returns `false` if anything failed.
fn run_parts(parts: &[&Part]) -> bool {
    let mut lines = Vec::new();
    let mut is_good = true;
    for part in parts {
        println!("\n--> {}", part.name);
        match (part.run)() {
            Ok(all) => {
                is_good &= all.iter().all(|counts| counts.failed.is_empty());
                lines.extend(all.iter().map(Counts::line));
            }
            Err(Stopped::LeftOut(reason)) => {
                lines.push(format!("{}: left out: {reason}", part.name));
            }
            Err(Stopped::Failed(problem)) => {
                is_good = false;
                lines.push(format!("{}: FAILED: {problem}", part.name));
            }
        }
    }
    println!();
    for line in lines {
        println!("{line}");
    }
    is_good
}

impl Counts {
    fn line(&self) -> String {
        let Self { place, passed, failed, left_out } = self;
        let first = format!("{place}: {passed} passed, {} failed", failed.len());
        let failed = failed.iter().map(|name| format!("    FAILED {name}"));
        let left_out =
            left_out.iter().map(|(pattern, reason)| format!("    left out {pattern}: {reason}"));
        let lines: Vec<String> = [first].into_iter().chain(failed).chain(left_out).collect();
        lines.join("\n")
    }
}

/// Returns the folder of everything that these checks download and build.
fn folder() -> Result<PathBuf, String> {
    let folder = root().join(target_folder()).join("cross");
    packages::make(&folder)?;
    folder.canonicalize().map_err(|error| format!("cannot find {}: {error}", folder.display()))
}

/// Installs the packages of programs that are missing.
fn install(programs: &[(&str, &str)]) -> Result<(), String> {
    let missing: Vec<&str> =
        programs.iter().filter(|(name, _)| !runs(name)).map(|(_, packages)| *packages).collect();
    if missing.is_empty() {
        return Ok(());
    }
    // Without a network, lists that are there may do.
    let _ = Invocation::apt_get("update --quiet").output();
    let install = format!("install --quiet --yes --no-install-recommends {}", missing.join(" "));
    Invocation::apt_get(&install).output().map(drop)
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn a_line_names_what_failed_and_what_was_left_out() {
        let counts = Counts {
            place: "musl".to_owned(),
            passed: 3,
            failed: vec!["a::b".to_owned()],
            left_out: vec![("c::", "needs d")],
        };
        assert_eq!(
            counts.line(),
            "musl: 3 passed, 1 failed\n    FAILED a::b\n    left out c::: needs d"
        );
    }
}
