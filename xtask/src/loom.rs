//! `cargo xtask loom`: the tests of `brigade-wire` whose names contain `loom`, under every
//! interleaving.
//!
//! Optimised, because loom runs a test some ten thousand times. In its own target folder, because
//! `--cfg loom` in `RUSTFLAGS` would otherwise rebuild every dependency at each change between loom
//! and everything else.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::invocation::Invocation;

/// Two forced switches find nearly every bug that loom can find, in a fraction of the time that all
/// would take.
const PREEMPTIONS: &str = "2";

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if !arguments.is_empty() {
        return Err("`cargo xtask loom` takes no arguments".to_owned());
    }
    check()?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn check() -> Result<(), String> {
    let tests = invocation();
    println!("running {tests}");
    // A filter that matches nothing passes; a model that was renamed must not leave this check
    // silently.
    let listed = tests.clone().arguments(["--".to_owned(), "--list".to_owned()]).output()?;
    if count_tests(&listed) == 0 {
        return Err(
            "no test of brigade-wire has `loom` in its name: name the models' module `loom`"
                .to_owned(),
        );
    }
    tests.run()
}

fn invocation() -> Invocation {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let preemptions =
        std::env::var("LOOM_MAX_PREEMPTIONS").unwrap_or_else(|_| PREEMPTIONS.to_owned());
    in_target(&target).variable("LOOM_MAX_PREEMPTIONS", &preemptions)
}

fn in_target(target: &Path) -> Invocation {
    Invocation::cargo("test -p brigade-wire --release --lib loom")
        .variable("RUSTFLAGS", "--cfg loom")
        .variable("CARGO_TARGET_DIR", &target.join("loom").to_string_lossy())
}

/// How many tests the harness lists: one line `path::name: test` for each.
fn count_tests(listed: &str) -> usize {
    listed.lines().filter(|line| line.ends_with(": test")).count()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{count_tests, in_target};

    #[test]
    fn loom_does_not_touch_the_usual_target_folder() {
        assert_eq!(
            in_target(Path::new("target")).to_string(),
            "RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=target/loom cargo test -p brigade-wire \
             --release --lib loom"
        );
    }

    #[test]
    fn an_empty_list_counts_no_test() {
        assert_eq!(
            count_tests("slots::loom::begin_against_revoke: test\n\n1 test, 0 benchmarks\n"),
            1
        );
        assert_eq!(count_tests("0 tests, 0 benchmarks\n"), 0);
    }
}
