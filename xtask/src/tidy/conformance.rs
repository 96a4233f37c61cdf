//! Checks the tables of promises: every test that a table names exists, and in
//! `docs/conformance.md` rows are numbered in order, each has a verdict with its reason, and the
//! counts at the top are those of the rows.

use super::Finding;
use super::links::anchor;
use crate::checkout::Checkout;
use crate::tokens::occurrences;

const TABLE: &str = "docs/conformance.md";

/// The verdicts, in the order of the columns of the counts.
const VERDICTS: [&str; 4] = ["pass", "differs", "missing", "n/a"];

/// The document whose paragraphs say where Brigade differs.
const SEMANTICS: &str = "docs/semantics.md";

const FAILURES: &str = "docs/failure-model.md";

/// The section of the failure model whose table names tests.
const WRITES: &str = "What a worker can write";

/// The folder of tests that are named without a path, wherever in it they are.
const TESTS: &str = "crates/integration/tests/";

/// A row of the table of promises: `| 12 | promise | verdict | tests, or the reason |`.
struct Row<'a> {
    line: usize,
    section: &'a str,
    number: u32,
    verdict: &'a str,
    reason: &'a str,
}

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let mut findings: Vec<_> =
        [TABLE, FAILURES].iter().flat_map(|path| missing_tests(checkout, path)).collect();
    let Some(table) = checkout.file(TABLE) else { return findings };
    let rows = rows(&table.text);
    let mut last = 0;
    for row in &rows {
        let Row { line, number, .. } = *row;
        if number != last + 1 {
            let message = format!("row {number} follows row {last}: number the rows in order");
            findings.push(Finding::new(TABLE, line, message));
        }
        last = number;
        let problem = problem(checkout, row);
        findings.extend(problem.map(|problem| Finding::new(TABLE, line, problem)));
    }
    findings.extend(wrong_counts(&table.text, &rows));
    findings
}

fn rows(text: &str) -> Vec<Row<'_>> {
    let (mut rows, mut section) = (Vec::new(), "");
    for (line, text) in (1..).zip(text.lines()) {
        section = text.strip_prefix("## ").unwrap_or(section);
        let mut cells = text.trim_matches('|').split('|').map(str::trim);
        let number = cells.next().and_then(|number| number.parse().ok());
        let (_promise, verdict, reason) = (cells.next(), cells.next(), cells.next());
        if let Some(number) = number.filter(|_| text.starts_with('|')) {
            let (verdict, reason) = (verdict.unwrap_or_default(), reason.unwrap_or_default());
            rows.push(Row { line, section, number, verdict, reason });
        }
    }
    rows
}

/// Returns what the verdict of a row lacks.
fn problem(checkout: &Checkout, row: &Row<'_>) -> Option<String> {
    let Row { verdict, reason, .. } = *row;
    let is_shown = match verdict {
        "pass" => tests(reason).next().is_some(),
        "differs" => paragraphs(reason).any(|id| has_paragraph(checkout, id)),
        _ => !reason.is_empty(),
    };
    match verdict {
        _ if !VERDICTS.contains(&verdict) => {
            Some(format!("`{verdict}` is no verdict: choose one of {}", VERDICTS.join(", ")))
        }
        _ if is_shown => None,
        "pass" => Some("name the test that shows it".to_owned()),
        "differs" => Some(format!(
            "link the paragraph that says so as `semantics.md#id`: {SEMANTICS} has its `<a id=` once"
        )),
        _ => Some("give the reason".to_owned()),
    }
}

/// Returns the targets of links to the semantics.
fn paragraphs(reason: &str) -> impl Iterator<Item = &str> {
    reason.split("(semantics.md#").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0))
}

fn has_paragraph(checkout: &Checkout, id: &str) -> bool {
    let mark = format!("<a id=\"{id}\"></a>");
    checkout.file(SEMANTICS).is_some_and(|file| file.text.matches(&mark).count() == 1)
}

/// Compares the counts before the first section with the rows: a line for each section that has
/// any, and one for all.
fn wrong_counts(text: &str, rows: &[Row<'_>]) -> Vec<Finding> {
    let line = |name: &str, rows: &[&Row<'_>]| {
        let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
        let [pass, differs, missing, other] = VERDICTS.map(count);
        format!("| {name} | {} | {pass} | {differs} | {missing} | {other} |", rows.len())
    };
    let of_section = |rows: &[Row<'_>]| {
        let section = rows[0].section;
        line(&format!("[{section}](#{})", anchor(section)), &rows.iter().collect::<Vec<_>>())
    };
    let mut expected: Vec<String> =
        rows.chunk_by(|one, two| one.section == two.section).map(of_section).collect();
    expected.push(line("all", &rows.iter().collect::<Vec<_>>()));
    let is_count = |(_, text): &(usize, &str)| text.starts_with("| [") || text.starts_with("| all");
    let top = (1..).zip(text.lines()).take_while(|(_, text)| !text.starts_with("## "));
    let (numbers, found): (Vec<usize>, Vec<&str>) = top.filter(is_count).unzip();
    if found == expected {
        return Vec::new();
    }
    let message = format!("the rows have other counts:\n{}", expected.join("\n"));
    vec![Finding::new(TABLE, numbers.first().copied().unwrap_or(1), message)]
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
    use super::check;
    use crate::tidy::locations;

    const INTEGRATION: (&str, &str) =
        ("crates/integration/tests/a.rs", "#[test]\nfn holds() {}\n// fn is_gone() {}\n");
    const UNIT: (&str, &str) = ("crates/b/src/c.rs", "#[test]\nfn holds_too() {}\n");
    const SEMANTICS: (&str, &str) = ("docs/semantics.md", "# S\n- <a id=\"here\"></a>Thus.\n");

    /// Checks a table with counts, whose first row is in line 6.
    fn found(counts: &str, rows: &str) -> Vec<String> {
        let table = format!("{counts}\n\n## One two\n\n|---|\n{rows}\n");
        let nested = ("crates/integration/tests/e/d.rs", "#[test]\nfn holds_in_a_folder() {}\n");
        locations(check, &[("docs/conformance.md", &table), INTEGRATION, UNIT, nested, SEMANTICS])
    }

    #[test]
    fn rows_with_verdicts_that_they_show_pass() {
        let counts = "| [One two](#one-two) | 4 | 2 | 1 | 0 | 1 |\n| all | 4 | 2 | 1 | 0 | 1 |";
        let rows = "| 1 | x | pass | `a::holds`, `crates/b/src/c.rs::holds_too`; `Pool::submit()` |\n\
                    | 2 | y | pass | `d::holds_in_a_folder` |\n\
                    | 3 | y | differs | [so](semantics.md#here) |\n\
                    | 4 | y | n/a | an enum |";
        let found = found(counts, rows);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn verdicts_without_their_reason_are_found() {
        let counts = "| [One two](#one-two) | 5 | 1 | 2 | 1 | 0 |\n| all | 5 | 1 | 2 | 1 | 0 |";
        let rows = "| 1 | x | pass | it does |\n\
                    | 2 | x | differs | so it is |\n\
                    | 3 | x | differs | [so](semantics.md#elsewhere) |\n\
                    | 4 | x | maybe | `a::holds` |\n\
                    | 5 | x | missing | |";
        let lines: Vec<String> =
            (7..12).map(|line| format!("docs/conformance.md:{line}")).collect();
        assert_eq!(found(counts, rows), lines);
    }

    #[test]
    fn counts_that_are_not_those_of_the_rows_are_found() {
        let row = "| 1 | x | pass | `a::holds` |";
        let right = "| [One two](#one-two) | 1 | 1 | 0 | 0 | 0 |\n| all | 1 | 1 | 0 | 0 | 0 |";
        assert!(found(right, row).is_empty());
        for wrong in [right.replace("| 0 |", "| 2 |"), right.replace("all", "al"), String::new()] {
            assert_eq!(found(&wrong, row), ["docs/conformance.md:1"], "{wrong}");
        }
    }

    #[test]
    fn repeated_and_missing_rows_are_found() {
        let counts = "| [One two](#one-two) | 3 | 0 | 0 | 0 | 3 |\n| all | 3 | 0 | 0 | 0 | 3 |";
        let rows = "| 1 | x | n/a | x |\n| 3 | x | n/a | x |\n| 3 | x | n/a | x |";
        assert_eq!(found(counts, rows), ["docs/conformance.md:8", "docs/conformance.md:9"]);
    }

    #[test]
    fn a_missing_test_is_found() {
        let table = "| all | 0 | 0 | 0 | 0 | 0 |\n\
                     `a::is_gone`\n`a::holds`\n`b::holds`\n`crates/b/src/d.rs::holds`\n";
        let found = locations(check, &[("docs/conformance.md", table), INTEGRATION, UNIT]);
        let lines = ["docs/conformance.md:2", "docs/conformance.md:4", "docs/conformance.md:5"];
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
}
