//! Checks that the table of tuned constants in `docs/tuning.md` has the values of the code.

use super::Finding;
use crate::checkout::Checkout;

const TABLE: &str = "docs/tuning.md";

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let Some(table) = checkout.file(TABLE) else { return Vec::new() };
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(table.text.lines()) {
        let cells: Vec<_> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let [_, name, value, _, _, path, _, _] = cells[..] else { continue };
        if !path.starts_with("crates/") {
            continue;
        }
        let message = match checkout.file(path).and_then(|file| value_of(&file.text, name)) {
            Some(found) if found == value => continue,
            Some(found) => format!("`{name}` is `{found}` in {path}: correct the table"),
            None => format!("there is no constant `{name}` in {path}: correct the table"),
        };
        findings.push(Finding::new(TABLE, number, message));
    }
    findings
}

/// Returns the value of a constant as it is written.
fn value_of<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = source.split_once(&format!("const {name}:"))?;
    let (_, rest) = rest.split_once('=')?;
    rest.split(';').next().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::locations;

    #[test]
    fn a_value_that_differs_and_a_constant_that_is_gone_are_found() {
        let code =
            ("crates/a/src/lib.rs", "const SPIN: Duration =\n    Duration::from_micros(50);\n");
        let row = |name, value| {
            format!("| `{name}` | `{value}` | time | a spin | `crates/a/src/lib.rs` | – |\n")
        };
        let found = |row: &str| locations(check, &[code, ("docs/tuning.md", row)]);
        assert!(found(&row("SPIN", "Duration::from_micros(50)")).is_empty());
        assert_eq!(found(&row("SPIN", "Duration::from_micros(20)")), ["docs/tuning.md:1"]);
        assert_eq!(found(&row("GONE", "1")), ["docs/tuning.md:1"]);
    }
}
