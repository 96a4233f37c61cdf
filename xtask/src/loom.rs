//! `cargo xtask loom`: runs the tests whose names contain `loom`, in every interleaving.
//!
//! Only packages of the workspace are compiled with `--cfg loom`, by a wrapper of the compiler, so
//! their dependencies are those of the other tests. Cargo asks the wrapper, too, which `cfg` there
//! are: the tables of dependencies for `cfg(loom)` count. That of xtask, none of whose code is
//! compiled, selects the features that the dependencies have in the build of the tests.

use std::process::ExitCode;

use crate::invocation::Invocation;
use crate::tools::Tools;

/// Maximum number of forced thread switches. Two of them find nearly every bug that loom can find,
/// in a fraction of the time for an unlimited number.
const PREEMPTIONS: &str = "2";

/// The variable in which loom reads it.
const VARIABLE: &str = "LOOM_MAX_PREEMPTIONS";

/// The crates with models.
const CRATES: [&str; 4] = ["brigade-sys", "brigade-wire", "brigade-task", "brigade-pool"];

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if !arguments.is_empty() {
        return Err("`cargo xtask loom` takes no arguments".to_owned());
    }
    check()?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn check() -> Result<(), String> {
    models(false).arguments(["--no-run".to_owned()]).counted().run()?;
    // A filter without a match passes, so a renamed model could drop out of this check unnoticed.
    let list = ["--".to_owned(), "--list".to_owned()];
    let listed = models(false).arguments(list).output()?;
    if count_crates(&listed) < CRATES.len() {
        let crates = CRATES.join(", ");
        return Err(format!(
            "one of {crates} has no test with `loom` in its name: name the modules of models `loom`"
        ));
    }
    let preemptions = std::env::var(VARIABLE).unwrap_or_else(|_| PREEMPTIONS.to_owned());
    models(Tools::installed().nextest).variable(VARIABLE, &preemptions).run()
}

/// Returns one call for all crates. With a call for each, cargo would build what they have in
/// common with different features, once more for each of them.
///
/// With nextest, each model has a process of its own. In one process they hold each other up,
/// because loom maps and unmaps stacks all the time.
fn models(nextest: bool) -> Invocation {
    let command = if nextest { "nextest run" } else { "test" };
    let packages = CRATES.map(|name| format!("-p {name}")).join(" ");
    Invocation::cargo(&format!("{command} {packages} -p xtask --no-default-features --lib loom"))
        .wrapped("loom.sh")
}

/// Returns the number of crates for which a harness lists tests, in a line such as `2 tests, 0
/// benchmarks`.
fn count_crates(listed: &str) -> usize {
    let totals = listed.lines().filter(|line| line.ends_with(" benchmarks"));
    totals.filter(|line| !line.starts_with("0 tests")).count()
}

#[cfg(test)]
mod tests {
    use super::{count_crates, models};
    use crate::checkout::root;

    #[test]
    fn only_the_workspace_is_compiled_for_loom() {
        let root = root().display().to_string();
        assert_eq!(
            models(true).to_string().replace(&root, ""),
            "cargo nextest run -p brigade-sys -p brigade-wire -p brigade-task -p brigade-pool \
             -p xtask --no-default-features --lib loom \
             --config 'build.rustc-workspace-wrapper=\"/xtask/loom.sh\"'"
        );
    }

    #[test]
    fn crates_without_models_are_noticed() {
        let listed = "slots::loom::begin: test\n\n1 test, 0 benchmarks\n0 tests, 0 benchmarks\n";
        assert_eq!(count_crates(listed), 1);
    }
}
