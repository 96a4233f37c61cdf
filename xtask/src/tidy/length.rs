//! Checks the length of files: 400 lines at most, and 800 for tests. Aim at 120, for one concept
//! per file.

use super::Finding;
use crate::checkout::Checkout;

const LIMIT: usize = 400;
const TEST_LIMIT: usize = 800;

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in checkout.rust_files() {
        let limit = if file.is_test() { TEST_LIMIT } else { LIMIT };
        let lines = file.text.lines().count();
        if lines > limit {
            let advice = if file.is_test() {
                "split it by subject"
            } else {
                "split it by concept, or move its tests to a sibling file `tests.rs`"
            };
            findings.push(Finding::new(
                &file.path,
                limit + 1,
                format!("{lines} lines, but {limit} are allowed: {advice}"),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::locations;

    #[test]
    fn the_limit_depends_on_the_kind_of_file() {
        let (full, long, too_long) = ("\n".repeat(400), "\n".repeat(800), "\n".repeat(801));
        let files = [
            ("crates/a/src/full.rs", full.as_str()),
            ("crates/a/src/long.rs", &long),
            ("crates/a/src/b/tests.rs", &long),
            ("crates/a/tests/c.rs", &too_long),
            ("docs/d.md", &too_long),
        ];
        assert_eq!(
            locations(check, &files),
            ["crates/a/src/long.rs:401", "crates/a/tests/c.rs:801"]
        );
    }
}
