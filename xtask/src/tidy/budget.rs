//! Checks that the published crates together have no more lines of code than [`SUM`], and each
//! crate no more than its budget. Lines of code are those below `src` that are neither empty nor
//! comments, without tests and models: also helpers of tests in a file of the product.
//!
//! The sum only falls: a commit that raises it fails, so that what is added takes the place of
//! something else. Budgets divide it: a crate that outgrows its own takes lines from another one,
//! and a decision in `docs/decisions/` says what for. The goals are where this is to lead.

use std::process::Command;

use super::{Finding, published};
use crate::checkout::{Checkout, File, root};

/// The most lines of code that the published crates have together. It is never raised.
const SUM: usize = 73_931;

/// The lines below the sum, or a budget, at which it has to be lowered.
const SLACK: usize = 200;

/// The goals of the published crates. Tidy prints how far they are.
const GOALS: [(&str, usize, Measure); 5] = [
    ("lines of published crates", 70_000, published_lines),
    ("lines of the pool", 8_500, |checkout| lines(checkout, "pool")),
    ("functions of more than 60 lines", 8, |checkout| count(checkout, long_functions)),
    ("places with `cfg(feature)`", 110, |checkout| count(checkout, feature_places)),
    ("published crates", 20, |checkout| published_crates(checkout).count()),
];

type Measure = fn(&Checkout) -> usize;

/// The lines of code above which a function is long.
const LONG: usize = 60;

/// The budgets of crates.
const BUDGETS: &[(&str, usize)] = &[
    ("base", 900),
    ("brigade", 200),
    ("cli", 9770),
    ("cluster", 8670),
    ("codec", 1360),
    ("cores", 3410),
    ("crash", 1200),
    ("elsewhere", 1200),
    ("escape", 1300),
    ("integration", 5400),
    ("link-ipc", 700),
    ("metrics", 1550),
    ("pool", 10030),
    ("runner", 4930),
    ("sandbox", 1530),
    ("scheduler", 4260),
    ("status", 800),
    ("supervisor", 4330),
    ("sys", 8780),
    ("task", 2400),
    ("testkit", 1000),
    ("testkit-core", 400),
    ("testkit-sys", 230),
    ("timer", 1900),
    ("trace", 500),
    ("windows", 300),
    ("wire", 3910),
    ("worker", 3320),
];

const PATH: &str = "xtask/src/tidy/budget.rs";

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    check_against(checkout, SUM, BUDGETS)
}

fn check_against(checkout: &Checkout, sum: usize, budgets: &[(&str, usize)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let all = published_lines(checkout);
    if all > sum {
        let message = format!(
            "the published crates have {all} lines of code, but SUM is {sum} and never raised: \
             delete as much as you add"
        );
        findings.push(Finding::new(PATH, 1, message));
    } else if all + SLACK < sum {
        let message = format!("the published crates have {all} lines of code: lower SUM to that");
        findings.push(Finding::new(PATH, 1, message));
    }
    for manifest in checkout.manifests() {
        let Some(name) = crate_of(manifest) else { continue };
        let lines = lines(checkout, name);
        let mut report = |message| findings.push(Finding::new(&manifest.path, 1, message));
        match budgets.iter().find(|(known, _)| *known == name) {
            None => report(format!("the crate has no budget: add it to BUDGETS in {PATH}")),
            Some((_, budget)) if lines > *budget => report(format!(
                "{lines} lines of code, but the budget is {budget}: move something out, or delete \
                 it; if the crate has to grow, say why in docs/decisions/, and take the lines from \
                 another crate in BUDGETS in {PATH}"
            )),
            Some((_, budget)) if lines + SLACK < *budget => report(format!(
                "{lines} lines of code are far below the budget of {budget}: lower it in BUDGETS \
                 in {PATH}"
            )),
            Some(_) => {}
        }
    }
    findings
}

/// Fails if this commit, or the change to come, raises the sum. Where the history is cut off, as in
/// the clones of CI, only the change to come counts.
pub(super) fn check_history() -> Result<(), String> {
    for commit in ["HEAD", "HEAD^"] {
        let output = Command::new("git")
            .args(["-c", "safe.directory=*", "show", &format!("{commit}:{PATH}")])
            .current_dir(root())
            .output()
            .map_err(|error| format!("tidy cannot start git to read {PATH}: {error}"))?;
        raised(&String::from_utf8_lossy(&output.stdout), SUM)?;
    }
    Ok(())
}

/// Fails if the sum is above that of an earlier text of this file.
fn raised(earlier: &str, sum: usize) -> Result<(), String> {
    let value = earlier.lines().find_map(|line| line.strip_prefix("const SUM: usize = "));
    let value = value.map(|value| value.trim_end_matches(';').replace('_', ""));
    match value.and_then(|value| value.parse().ok()) {
        Some(before) if sum > before => Err(format!(
            "SUM in {PATH} is raised from {before} to {sum}: delete as much as you add"
        )),
        _ => Ok(()),
    }
}

/// Prints how far each goal is.
pub(super) fn print_distances(checkout: &Checkout) {
    for (name, goal, measure) in GOALS {
        let now = measure(checkout);
        let left = now.saturating_sub(goal);
        println!("tidy: {now} {name}, the goal is {goal}: {left} to go");
    }
}

/// Returns the folder of a crate below `crates`; `None` for other packages.
fn crate_of(manifest: &File) -> Option<&str> {
    let name = manifest.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
    (!name.contains('/')).then_some(name)
}

fn published_crates(checkout: &Checkout) -> impl Iterator<Item = &str> {
    published::published(checkout).filter_map(crate_of)
}

fn published_lines(checkout: &Checkout) -> usize {
    published_crates(checkout).map(|name| lines(checkout, name)).sum()
}

/// Counts something in the code of all published crates.
fn count(checkout: &Checkout, of: fn(&[&str]) -> usize) -> usize {
    let files = published_crates(checkout).flat_map(|name| code(checkout, name));
    files.map(|lines| of(&lines)).sum()
}

/// Returns the number of lines of code of a crate.
fn lines(checkout: &Checkout, name: &str) -> usize {
    code(checkout, name).map(|lines| lines.len()).sum()
}

/// Returns the lines of code of each file of a crate.
fn code<'a>(checkout: &'a Checkout, name: &str) -> impl Iterator<Item = Vec<&'a str>> {
    let source = format!("crates/{name}/src/");
    let is_model = |path: &str| path.ends_with("/loom.rs") || path.contains("/loom/");
    let files = checkout.rust_files().filter(move |file| file.path.starts_with(&source));
    files
        .filter(move |file| !file.is_test() && !is_model(&file.path))
        .map(|file| without_tests(file.code.lines().filter(|line| !line.trim().is_empty())))
}

/// Leaves out each item, field or arm that only tests have.
fn without_tests<'a>(mut lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let is_of_tests = |line: &str| {
        line.trim_start().strip_prefix("#[cfg(").is_some_and(|condition| {
            condition.starts_with("test)") || condition.starts_with("all(test,")
        })
    };
    let mut code = Vec::new();
    while let Some(line) = lines.next() {
        if is_of_tests(line) {
            lines.find(|other| {
                let is_attribute = other.trim_start().starts_with('#');
                let is_part = indent(other) == indent(line) && other.ends_with(',');
                !is_attribute && (is_part || ends(line, other))
            });
        } else {
            code.push(line);
        }
    }
    code
}

/// Returns `true` if an item ends on a line, at a brace or a semicolon that is indented as it is.
fn ends(begin: &str, line: &str) -> bool {
    indent(line) == indent(begin) && line.trim_end().ends_with(['}', ';'])
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Counts functions of more than [`LONG`] lines.
fn long_functions(lines: &[&str]) -> usize {
    let begins = |line: &&str| line.split_whitespace().take(5).any(|word| word == "fn");
    let is_long = |(begin, line): (usize, &&str)| {
        lines[begin..].iter().take_while(|other| !ends(line, other)).count() >= LONG
    };
    lines.iter().enumerate().filter(|(_, line)| begins(line)).filter(|it| is_long(*it)).count()
}

fn feature_places(lines: &[&str]) -> usize {
    lines.iter().filter(|line| line.replace("target_feature", "").contains("feature =")).count()
}

#[cfg(test)]
mod tests {
    use super::{SUM, check_against, feature_places, long_functions, raised, without_tests};
    use crate::checkout::Checkout;

    const MANIFEST: (&str, &str) = ("crates/a/Cargo.toml", "[package]\nname = \"brigade-a\"\n");
    const PRIVATE: (&str, &str) =
        ("crates/b/Cargo.toml", "[package]\nname = \"brigade-b\"\npublish = false\n");
    const CODE: (&str, &str) = (
        "crates/a/src/lib.rs",
        "//! A.\n\n#[cfg(test)]\nmod tests;\n\n#[cfg(test)]\n#[expect(unused)]\nimpl A {\n    \
         fn e() {}\n}\n\nfn f() {\n}\n\n#[cfg(all(test, unix))]\nmod other {\n    fn g() {}\n}\n",
    );

    fn found(sum: usize, budgets: &[(&str, usize)]) -> Vec<String> {
        let checkout = Checkout::of(&[
            MANIFEST,
            CODE,
            ("crates/a/src/tests.rs", "fn h() {}\n"),
            PRIVATE,
            ("crates/b/src/lib.rs", "fn i() {}\n"),
        ]);
        check_against(&checkout, sum, budgets).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_code_counts_against_the_budget() {
        assert!(found(2, &[("a", 2), ("b", 1)]).is_empty());
        assert!(
            found(2, &[("a", 1), ("b", 1)])[0].contains("2 lines of code, but the budget is 1")
        );
    }

    #[test]
    fn what_only_tests_have_does_not_count() {
        let code = "struct A {\n    a: u8,\n    #[cfg(test)]\n    b: u8,\n    c: u8,\n}\n\
                    #[cfg(test)]\n#[rustfmt::skip]\nfn f(\n    a: u8,\n) {\n}\nfn g() {\n}";
        let left = ["struct A {", "    a: u8,", "    c: u8,", "}", "fn g() {", "}"];
        assert_eq!(without_tests(code.lines()), left);
    }

    #[test]
    fn a_crate_without_a_budget_and_one_far_below_are_found() {
        assert!(found(2, &[("a", 2)])[0].contains("has no budget"));
        assert!(found(2, &[("a", 203), ("b", 1)])[0].contains("far below"));
    }

    #[test]
    fn the_sum_of_published_crates_is_limited() {
        let budgets = [("a", 2), ("b", 1)];
        assert!(found(1, &budgets)[0].contains("delete as much as you add"));
        assert!(found(203, &budgets)[0].contains("lower SUM"));
    }

    #[test]
    fn a_commit_that_raises_the_sum_is_found() {
        let text = include_str!("budget.rs");
        assert_eq!(raised(text, SUM), Ok(()));
        assert!(raised(text, SUM + 1).unwrap_err().contains("is raised"));
        assert_eq!(raised("", SUM), Ok(()));
    }

    #[test]
    fn long_functions_and_places_with_features_are_counted() {
        let body = "        call();\n".repeat(58);
        let long = format!("    pub(crate) fn f()\n    {{\n{body}    }}\n");
        let short = format!("    const fn f() {{\n{body}    }}\n    fn g();\n{body}");
        let count = |text: &str| long_functions(&text.lines().collect::<Vec<_>>());
        assert_eq!((count(&long), count(&short)), (1, 0));
        assert_eq!(feature_places(&["#[cfg(feature = \"   \")]", "fn feature() {}"]), 1);
    }
}
