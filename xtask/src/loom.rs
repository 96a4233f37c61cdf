//! `cargo xtask loom`: runs the tests whose names contain `loom`, in every interleaving.
//!
//! The build is optimized, because loom runs a test some ten thousand times. It has its own target
//! folder, because otherwise `--cfg loom` in `RUSTFLAGS` would rebuild every dependency at each
//! change between loom and other builds.

use std::path::Path;
use std::process::ExitCode;

use crate::checkout::target_folder;
use crate::invocation::Invocation;

/// Maximum number of forced thread switches. Two of them find nearly every bug that loom can find,
/// in a fraction of the time for an unlimited number.
const PREEMPTIONS: &str = "2";

/// The crates with models.
const CRATES: [&str; 3] = ["brigade-sys", "brigade-wire", "brigade-pool"];

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if !arguments.is_empty() {
        return Err("`cargo xtask loom` takes no arguments".to_owned());
    }
    check()?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn check() -> Result<(), String> {
    CRATES.into_iter().try_for_each(check_crate)
}

fn check_crate(name: &str) -> Result<(), String> {
    let tests = invocation(name);
    println!("running {tests}");
    // A filter without a match passes, so a renamed model could drop out of this check unnoticed.
    let listed = tests.clone().arguments(["--".to_owned(), "--list".to_owned()]).output()?;
    if count_tests(&listed) == 0 {
        return Err(format!(
            "no test of {name} has `loom` in its name: name the modules of models `loom`"
        ));
    }
    tests.run()
}

fn invocation(name: &str) -> Invocation {
    let preemptions =
        std::env::var("LOOM_MAX_PREEMPTIONS").unwrap_or_else(|_| PREEMPTIONS.to_owned());
    in_target(name, &target_folder()).variable("LOOM_MAX_PREEMPTIONS", &preemptions)
}

fn in_target(name: &str, target: &Path) -> Invocation {
    Invocation::cargo(&format!("test -p {name} --release --lib loom"))
        .variable("RUSTFLAGS", "--cfg loom")
        .variable("CARGO_TARGET_DIR", &target.join("loom").to_string_lossy())
}

/// Returns the number of tests that the harness lists, one line `path::name: test` for each.
fn count_tests(listed: &str) -> usize {
    listed.lines().filter(|line| line.ends_with(": test")).count()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{count_tests, in_target};

    #[test]
    fn loom_has_its_own_target_folder() {
        assert_eq!(
            in_target("brigade-wire", Path::new("target")).to_string(),
            "RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=target/loom cargo test -p brigade-wire \
             --release --lib loom"
        );
    }

    #[test]
    fn only_lines_of_tests_are_counted() {
        assert_eq!(
            count_tests("slots::loom::begin_against_revoke: test\n\n1 test, 0 benchmarks\n"),
            1
        );
        assert_eq!(count_tests("0 tests, 0 benchmarks\n"), 0);
    }
}
