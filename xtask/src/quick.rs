//! `cargo xtask test --quick` and `cargo xtask test CRATE`: checks for between two commits.
//!
//! Both lint and compile in one pass, as the whole run does, and keep incremental data.

use std::process::ExitCode;

use crate::checkout::{Checkout, root};
use crate::invocation::Invocation;
use crate::linted::{documented, folder, linted, selected};
use crate::step::{self, How, Lane, LeftOut, Step};
use crate::tidy;
use crate::tidy::conformance;

/// The packages that `--quick` leaves out, since they or what they use take long to compile.
const LEFT_OUT: [&str; 9] = [
    "brigade-benches",
    "brigade-cli",
    "brigade-cluster",
    "brigade-escape",
    "brigade-example-cluster",
    "brigade-example-image-loader",
    "brigade-example-service",
    "brigade-runner",
    "brigade-scale",
];

/// Number of random cases of each property, an eighth of the default.
const FEW_CASES: &str = "32";

/// Runs the steps for one package, or for all but a few without one.
pub(crate) fn run(package: Option<&str>) -> Result<ExitCode, String> {
    let mut steps = vec![
        Step::cargo(Lane::First, "format", Invocation::cargo("fmt --all -- --check")),
        Step::new(Lane::First, "tidy", "cargo xtask tidy", tidy::check),
    ];
    let mut left_out = Vec::new();
    if let Some(name) = package {
        steps.extend(of_package(&full_name(name, &Checkout::read()?)?));
    } else {
        steps.extend(of_all());
        let reason = "`cargo xtask test` checks them".to_owned();
        left_out.push(LeftOut { name: LEFT_OUT.join(", "), reason: reason.clone() });
        left_out.push(LeftOut { name: "most random cases of properties".to_owned(), reason });
    }
    let how = How { keep_going: true, budget: None, folder: folder() };
    Ok(step::run_all(&steps, &left_out, &how))
}

/// Returns the name of a package in the workspace, which may be given without `brigade-`.
fn full_name(name: &str, checkout: &Checkout) -> Result<String, String> {
    let full = format!("brigade-{name}");
    let names = [name, &full].map(|name| format!("name = \"{name}\"\n"));
    let texts = || checkout.manifests().map(|file| &file.text);
    match names.iter().position(|line| texts().any(|text| text.contains(line))) {
        Some(0) => Ok(name.to_owned()),
        Some(_) => Ok(full),
        None => Err(format!("no package is named {name} or {full}: see the folder crates")),
    }
}

fn of_package(name: &str) -> Vec<Step> {
    let build = linted(&format!("test -p {name} --all-targets --no-run")).counted();
    let mut steps = vec![
        Step::cargo(Lane::First, "clippy, and the build of the tests", build),
        Step::cargo(Lane::Processes, "tests", selected(&format!("-p {name} --no-tests pass"), "")),
    ];
    if root().join("crates").join(name.trim_start_matches("brigade-")).join("src/lib.rs").exists() {
        let documentation = documented(&format!("test -p {name} --doc"));
        steps.push(Step::cargo(Lane::Builds, "documentation and its tests", documentation));
    }
    steps
}

fn of_all() -> [Step; 2] {
    let excluded = LEFT_OUT.map(|name| format!("--exclude {name}")).join(" ");
    let targets = format!("--workspace {excluded} --lib --tests");
    let build = linted(&format!("test {targets} --no-run")).counted();
    let promises = move || {
        let checkout = Checkout::read()?;
        let names = conformance::one_test_each(&checkout).join("|");
        let filter = format!("kind(lib)|(package(brigade-integration)&test(/::({names})$/))");
        selected(&targets, &filter).variable("PROPTEST_CASES", FEW_CASES).run()
    };
    [
        Step::cargo(Lane::First, "clippy, and the build of the tests", build),
        Step::new(
            Lane::Processes,
            "unit tests, and one test of each promise",
            "cargo xtask test --quick",
            promises,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::{Checkout, LEFT_OUT, full_name};

    #[test]
    fn packages_are_found_by_either_name() {
        let checkout = Checkout::read().unwrap();
        assert_eq!(full_name("pool", &checkout).as_deref(), Ok("brigade-pool"));
        assert_eq!(full_name("brigade-pool", &checkout).as_deref(), Ok("brigade-pool"));
        assert_eq!(full_name("brigade", &checkout).as_deref(), Ok("brigade"));
        assert!(full_name("poll", &checkout).is_err());
    }

    #[test]
    fn what_is_left_out_exists() {
        let checkout = Checkout::read().unwrap();
        assert!(LEFT_OUT.iter().all(|name| full_name(name, &checkout).is_ok()));
    }
}
