//! `cargo xtask crashes`: what crash reports say about other builds than those of the tests.
//!
//! The tests are built for development, with unwinding and dynamically linked. Here the example
//! `crash` is built as programs are shipped, and has to name the right functions, or the right
//! places if nothing else is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::checkout::{root, target_folder};
use crate::invocation::Invocation;
use crate::linted::selected;
use crate::tools::HOST;

/// A kind of build.
struct Build {
    name: &'static str,
    programs: &'static str,
    profile: &'static str,
    variables: &'static [(&'static str, &'static str)],
    /// Parts of the output.
    expected: &'static [&'static str],
}

const SHIPPED: Build = Build {
    name: "optimized as one piece, panics abort, lines",
    programs: "-p brigade-example-crash",
    profile: "release",
    variables: &[
        ("CARGO_PROFILE_RELEASE_LTO", "fat"),
        // What is one piece takes long to optimize further, and this inlines already.
        ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
        ("CARGO_PROFILE_RELEASE_PANIC", "abort"),
        ("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only"),
    ],
    expected: &[
        "(upload 17.jpg) lost its worker",
        "SIGABRT (signal 6), aborted",
        "parse_header",
        "main.rs:",
        "stack overflow at address 0x",
        "more calls of it",
        "(decoder)",
        "aborted: panicked at",
        "the number 7 is too small",
        "wait_for_a_reply",
        "and the next task returns 6",
    ],
};

const STATIC: Build = Build {
    name: "statically linked, position-independent",
    // The second one is for a test that is part of others.
    programs: "-p brigade-example-crash -p brigade-integration --bin brigade-example-crash --bin started",
    profile: "dev",
    variables: &[
        ("RUSTFLAGS", "-C target-feature=+crt-static -C relocation-model=pie"),
        ("CARGO_PROFILE_DEV_DEBUG", "none"),
    ],
    expected: &[
        "(upload 17.jpg) lost its worker",
        "brigade_example_crash::parse_header",
        "stack overflow at address 0x",
        "brigade_example_crash::depth",
        "(number 7) panicked at",
        "brigade_example_crash::wait_for_a_reply",
        "and the next task returns 6",
    ],
};

/// The same without any symbol.
const STRIPPED: &[&str] = &[
    "(upload 17.jpg) lost its worker",
    "SIGABRT (signal 6), aborted",
    "<unknown>",
    "brigade-example-crash + 0x",
    "stack overflow at address 0x",
    "and the next task returns 6",
];

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if !arguments.is_empty() {
        return Err("`cargo xtask crashes` takes no arguments".to_owned());
    }
    check()?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn check() -> Result<(), String> {
    SHIPPED.check()?;
    STATIC.check()?;
    let program = STATIC.program().with_file_name("started");
    let program = root().join(program);
    let one = "package(brigade-integration)&test(a_static_program_alone)";
    let test = selected("--workspace --no-capture", one);
    test.variable("BRIGADE_STATIC_PROGRAM", &program.to_string_lossy()).run()?;
    let stripped = folder().join("stripped");
    let copy = stripped.join("brigade-example-crash");
    let copied = fs::create_dir_all(&stripped).and_then(|()| fs::copy(STATIC.program(), &copy));
    copied.map_err(|error| format!("cannot copy {}: {error}", copy.display()))?;
    Invocation::strip(&copy).run()?;
    expect("stripped", &copy, STRIPPED)
}

impl Build {
    fn check(&self) -> Result<(), String> {
        self.invocation().counted().run()?;
        expect(self.name, &self.program(), self.expected)
    }

    fn invocation(&self) -> Invocation {
        let Self { programs, profile, .. } = self;
        let build = format!("build --locked {programs} --target {HOST} --profile {profile}");
        let build = Invocation::cargo(&build);
        let build = build.variable("CARGO_TARGET_DIR", &folder().to_string_lossy());
        let variables = self.variables.iter();
        variables.fold(build, |build, (name, value)| build.variable(name, value))
    }

    fn program(&self) -> PathBuf {
        let profile = if self.profile == "dev" { "debug" } else { self.profile };
        folder().join(HOST).join(profile).join("brigade-example-crash")
    }
}

fn folder() -> PathBuf {
    target_folder().join("crashes")
}

fn expect(name: &str, program: &Path, expected: &[&str]) -> Result<(), String> {
    let output = Invocation::program(program).output()?;
    let missing: Vec<_> = expected.iter().filter(|part| !output.contains(**part)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("the build \"{name}\" does not say {missing:?}, but\n{output}"))
}

#[cfg(test)]
mod tests {
    use super::{SHIPPED, STATIC};

    #[test]
    fn each_build_has_the_folder_of_this_command() {
        for build in [SHIPPED.invocation(), STATIC.invocation()] {
            assert!(build.to_string().contains("crashes"), "{build}");
        }
    }
}
