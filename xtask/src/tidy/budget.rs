//! Checks that each crate keeps within its budget of lines of code: those below `src` that are
//! neither empty nor comments, without tests and models.
//!
//! A budget is what a crate has, rounded up to the next hundred. A crate that outgrows it gets a
//! decision in `docs/decisions/` that says what it is for, and not a larger number alone. The goals
//! are 7,800 lines for the pool and 58,500 for all.

use super::Finding;
use crate::checkout::Checkout;

/// The budgets of crates.
const BUDGETS: &[(&str, usize)] = &[
    ("brigade", 200),
    ("cli", 10700),
    ("cluster", 9600),
    ("codec", 1330),
    ("cores", 3500),
    ("crash", 1330),
    ("elsewhere", 1200),
    ("escape", 1300),
    ("ids", 100),
    ("integration", 5340),
    ("link-ipc", 700),
    ("metrics", 1900),
    ("pool", 10830),
    ("resources", 400),
    ("runner", 5500),
    ("sandbox", 1600),
    ("scheduler", 4540),
    ("status", 800),
    ("supervisor", 4510),
    ("sys", 9100),
    ("task", 2600),
    ("testkit", 1000),
    ("testkit-core", 300),
    ("time", 400),
    ("timer", 1900),
    ("trace", 500),
    ("windows", 300),
    ("wire", 3930),
    ("worker", 3510),
];

const TABLE: &str = "BUDGETS in xtask/src/tidy/budget.rs";

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    check_against(checkout, BUDGETS)
}

fn check_against(checkout: &Checkout, budgets: &[(&str, usize)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in checkout.manifests() {
        let Some(name) = manifest.path.strip_prefix("crates/") else { continue };
        let name = name.trim_end_matches("/Cargo.toml");
        if name.contains('/') {
            continue;
        }
        let lines = lines(checkout, name);
        let mut report = |message| findings.push(Finding::new(&manifest.path, 1, message));
        match budgets.iter().find(|(known, _)| *known == name) {
            None => report(format!("the crate has no budget: add it to {TABLE}")),
            Some((_, budget)) if lines > *budget => report(format!(
                "{lines} lines of code, but the budget is {budget}: move something out, or delete \
                 it; if the crate has to grow, say why in docs/decisions/ and change {TABLE}"
            )),
            Some((_, budget)) if lines + 200 < *budget => report(format!(
                "{lines} lines of code are far below the budget of {budget}: lower it in {TABLE}"
            )),
            Some(_) => {}
        }
    }
    findings
}

/// Returns the number of lines of code of a crate.
fn lines(checkout: &Checkout, name: &str) -> usize {
    let source = format!("crates/{name}/src/");
    let is_model = |path: &str| path.ends_with("/loom.rs") || path.contains("/loom/");
    let files = checkout.rust_files().filter(|file| file.path.starts_with(&source));
    files
        .filter(|file| !file.is_test() && !is_model(&file.path))
        .map(|file| {
            let lines = file.code.lines().take(file.first_test_line() - 1);
            lines.filter(|line| !line.trim().is_empty()).count()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::check_against;
    use crate::checkout::Checkout;

    const MANIFEST: (&str, &str) = ("crates/a/Cargo.toml", "[package]\nname = \"brigade-a\"\n");
    const CODE: (&str, &str) = (
        "crates/a/src/lib.rs",
        "//! A.\n\nfn f() {\n}\n\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n",
    );

    fn found(budgets: &[(&str, usize)]) -> Vec<String> {
        let checkout = Checkout::of(&[MANIFEST, CODE, ("crates/a/src/tests.rs", "fn h() {}\n")]);
        check_against(&checkout, budgets).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_code_counts_against_the_budget() {
        assert!(found(&[("a", 2)]).is_empty());
        assert!(found(&[("a", 1)])[0].contains("2 lines of code, but the budget is 1"));
    }

    #[test]
    fn a_crate_without_a_budget_and_one_far_below_are_found() {
        assert!(found(&[])[0].contains("has no budget"));
        assert!(found(&[("a", 203)])[0].contains("far below"));
    }
}
