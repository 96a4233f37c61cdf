//! `cargo xtask scale` and `cargo xtask simulate`: build the program of benches/scale and run its
//! command of that kind with the same arguments.
//!
//! The program is linked statically, so that it can be copied to a machine with more cores.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::checkout::{self, target_folder};
use crate::invocation::Invocation;
use crate::tools::HOST;

pub(crate) fn measure(arguments: &[String]) -> Result<ExitCode, String> {
    if arguments.iter().any(|argument| argument == "--build-only") {
        if arguments.len() > 1 {
            return Err(
                "`--build-only` takes no other arguments: give them to the program, which \
                        it prints"
                    .to_owned(),
            );
        }
        build()?;
        let program = checkout::root().join(program());
        println!("{}", program.display());
        println!("copy it to a Linux machine of the same architecture, and run there:");
        println!("  ./brigade-scale measure --json scale.json");
        println!("  ./brigade-scale simulate --against scale.json");
        return Ok(ExitCode::SUCCESS);
    }
    run("measure", arguments)
}

pub(crate) fn simulate(arguments: &[String]) -> Result<ExitCode, String> {
    run("simulate", arguments)
}

fn run(command: &str, arguments: &[String]) -> Result<ExitCode, String> {
    // Build separately, so that a failed build is not mistaken for a failed measurement.
    build()?;
    let program = Invocation::program(&program()).arguments([command.to_owned()]);
    program.arguments(arguments.iter().cloned()).run()?;
    Ok(ExitCode::SUCCESS)
}

fn build() -> Result<(), String> {
    invocation().run()
}

fn invocation() -> Invocation {
    let commit = Invocation::git("log -1 --format=%h").output().unwrap_or_default();
    // With a target named, the flags apply to neither build scripts nor macros.
    Invocation::cargo(&format!("build --release -p brigade-scale --target {HOST}"))
        .variable("RUSTFLAGS", "-C target-feature=+crt-static -C relocation-model=static")
        .variable("CARGO_TARGET_DIR", &folder().to_string_lossy())
        .variable("BRIGADE_COMMIT", commit.trim())
}

fn program() -> PathBuf {
    folder().join(HOST).join("release/brigade-scale")
}

/// A folder of its own, because other flags would build everything again.
fn folder() -> PathBuf {
    target_folder().join("scale")
}

#[cfg(test)]
mod tests {
    use super::{invocation, measure};

    #[test]
    fn the_program_is_linked_statically_in_a_folder_of_its_own() {
        let build = invocation().to_string();
        assert!(build.contains("+crt-static") && build.contains("/scale"), "{build}");
    }

    #[test]
    fn a_build_alone_takes_no_other_arguments() {
        let arguments = ["--build-only", "--seconds"].map(str::to_owned);
        assert!(measure(&arguments).unwrap_err().contains("no other arguments"));
    }
}
