//! Checks the tables of promises: rows of `docs/conformance.md` are complete and in order, and
//! every test that a table names exists.

use super::Finding;
use crate::checkout::Checkout;
use crate::tokens::occurrences;

const TABLE: &str = "docs/conformance.md";

/// The number of promises that the suites of the peers and this project test.
const ROWS: u32 = 142;

const FAILURES: &str = "docs/failure-model.md";

/// The section of the failure model whose table names tests.
const WRITES: &str = "What a worker can write";

/// The folder of tests that are named without a path, wherever in it they are.
const TESTS: &str = "crates/integration/tests/";

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let mut findings: Vec<_> =
        [TABLE, FAILURES].iter().flat_map(|path| missing_tests(checkout, path)).collect();
    let Some(table) = checkout.file(TABLE) else { return findings };
    let mut last = 0;
    for (number, line) in (1..).zip(table.text.lines()) {
        let Some(row) = row(line) else { continue };
        if row != last + 1 {
            findings.push(Finding::new(
                TABLE,
                number,
                format!("row {row} follows row {last}: list each row once and in order"),
            ));
        }
        last = row;
    }
    if last != ROWS {
        findings.push(Finding::new(TABLE, 1, format!("the last row is {last} instead of {ROWS}")));
    }
    findings
}

/// Returns the names of one test of each promise of this table and of that of complaints above it:
/// the first one that is an integration test.
pub(crate) fn one_test_each(checkout: &Checkout) -> Vec<String> {
    let rows = checkout.file(TABLE).into_iter().flat_map(|table| table.text.lines());
    let rows = rows.filter(|line| line.starts_with("| "));
    let first = |row| {
        let test = tests(row).find(|test| !is_path(test))?;
        Some(test.split_once("::")?.1.to_owned())
    };
    let mut names: Vec<String> = rows.filter_map(first).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn missing_tests(checkout: &Checkout, path: &str) -> Vec<Finding> {
    let Some(table) = checkout.file(path) else { return Vec::new() };
    let mut findings = Vec::new();
    let mut counts = path == TABLE;
    for (number, line) in (1..).zip(table.text.lines()) {
        // Other sections of the failure model name functions, which have the same form.
        if let Some(heading) = line.strip_prefix("## ") {
            counts = path == TABLE || heading == WRITES;
        }
        for test in tests(line).filter(|test| counts && !exists(checkout, test)) {
            let message = format!("there is no test `{test}`: correct its name or its file");
            findings.push(Finding::new(path, number, message));
        }
    }
    findings
}

/// Returns the number of a row: `| 12 | ... |`.
fn row(line: &str) -> Option<u32> {
    line.strip_prefix("| ")?.split(' ').next()?.parse().ok()
}

/// Returns the names of tests in code spans: `file::test`.
fn tests(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split('`').skip(1).step_by(2);
    // A type begins with a capital letter, so `Pool::submit` is not a test.
    let is_name = |text: &str| {
        let letters = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        text.chars().all(|letter| letters(letter) || letter == '_')
    };
    code.filter(move |code| {
        code.split_once("::")
            .is_some_and(|(file, test)| is_name(test) && (is_name(file) || is_path(file)))
    })
}

fn is_path(file: &str) -> bool {
    file.contains('/')
}

fn exists(checkout: &Checkout, test: &str) -> bool {
    let Some((file, name)) = test.split_once("::") else { return false };
    let end = format!("/{file}.rs");
    let is_named = |path: &str| {
        if is_path(file) { path == file } else { path.starts_with(TESTS) && path.ends_with(&end) }
    };
    let function = format!("fn {name}(");
    // A macro generates a test for each of its lines: `name: some, arguments;`.
    let line = format!("{name}: ");
    checkout.rust_files().filter(|file| is_named(&file.path)).any(|file| {
        occurrences(&file.code, &function).next().is_some()
            || file.code.lines().any(|text| text.trim_start().starts_with(&line))
    })
}

#[cfg(test)]
mod tests {
    use super::{ROWS, check};
    use crate::tidy::locations;

    const INTEGRATION: (&str, &str) =
        ("crates/integration/tests/a.rs", "#[test]\nfn holds() {}\n// fn is_gone() {}\n");
    const UNIT: (&str, &str) = ("crates/b/src/c.rs", "#[test]\nfn holds_too() {}\n");

    #[test]
    fn tests_that_exist_pass() {
        let table = "| 1 | x | `a::holds`, `crates/b/src/c.rs::holds_too`; `Pool::submit()` |\n\
                     | 2 | y | `d::holds_in_a_folder` |\n";
        let table = &format!("{table}{}", rows(3));
        let nested = ("crates/integration/tests/e/d.rs", "#[test]\nfn holds_in_a_folder() {}\n");
        let files = [("docs/conformance.md", table.as_str()), INTEGRATION, UNIT, nested];
        assert!(locations(check, &files).is_empty());
    }

    #[test]
    fn a_missing_test_is_found() {
        let table = "`a::is_gone`\n`a::holds`\n`b::holds`\n`crates/b/src/d.rs::holds`\n";
        let table = &format!("{table}{}", rows(1));
        let found = locations(check, &[("docs/conformance.md", table.as_str()), INTEGRATION, UNIT]);
        let lines = ["docs/conformance.md:1", "docs/conformance.md:3", "docs/conformance.md:4"];
        assert_eq!(found, lines);
    }

    #[test]
    fn a_test_of_the_failure_model_may_come_from_a_macro() {
        let made = ("crates/integration/tests/m.rs", "variants! {\n    made: Positions;\n}\n");
        let table = "`worker::expires`\n\
                     ## What a worker can write\n| `m::made`, `a::holds` |\n| `m::gone` |\n\
                     ## In the host\n`worker::expires`\n";
        let found = locations(check, &[("docs/failure-model.md", table), made, INTEGRATION]);
        assert_eq!(found, ["docs/failure-model.md:4"]);
    }

    #[test]
    fn repeated_and_missing_rows_are_found() {
        let table = &format!("| 1 | x |\n| 3 | x |\n| 3 | x |\n{}", rows(4));
        let found = locations(check, &[("docs/conformance.md", table)]);
        assert_eq!(found, ["docs/conformance.md:2", "docs/conformance.md:3"]);
        let found = locations(check, &[("docs/conformance.md", "| 1 | x |\n")]);
        assert_eq!(found, ["docs/conformance.md:1"]);
    }

    /// Returns the rows from one on.
    fn rows(first: u32) -> String {
        (first..=ROWS).map(|row| format!("| {row} | x |\n")).collect::<Vec<_>>().concat()
    }
}
