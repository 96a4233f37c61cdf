//! `unsafe` stays in crates/sys, where clippy demands a `SAFETY` comment for each block.

use super::{Finding, mask};
use crate::checkout::{Checkout, File};

const LEAF: &str = "crates/sys/";
const FORBID: &str = "#![forbid(unsafe_code)]";

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in checkout.rust_files().filter(|file| !file.path.starts_with(LEAF)) {
        if is_crate_root(file) && !file.code.contains(FORBID) {
            findings.push(Finding::new(
                &file.path,
                1,
                format!("add `{FORBID}` below the crate's comment"),
            ));
        }
        for (number, line) in file.code_lines() {
            if mask::occurrences(line, "unsafe").next().is_some() {
                let message =
                    "`unsafe` outside crates/sys: put the operation there, behind a safe function";
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    findings
}

/// Roots of libraries and programs; tests and examples have one root a file, and the second rule
/// covers them.
fn is_crate_root(file: &File) -> bool {
    file.path.ends_with("src/lib.rs")
        || file.path.ends_with("src/main.rs")
        || file.path.contains("/src/bin/")
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::places;

    #[test]
    fn a_root_that_does_not_forbid_is_found() {
        let good = "//! A.\n#![forbid(unsafe_code)]\n";
        let bad = "//! A. `#![forbid(unsafe_code)]`\n";
        let files = [
            ("crates/a/src/lib.rs", good),
            ("crates/b/src/lib.rs", bad),
            ("crates/b/src/bin/c.rs", bad),
            ("b/src/d.rs", bad),
        ];
        assert_eq!(places(check, &files), ["crates/b/src/lib.rs:1", "crates/b/src/bin/c.rs:1"]);
    }

    #[test]
    fn the_word_is_found_in_code_only_and_allowed_in_the_leaf() {
        let source = "// unsafe\nlet text = \"unsafe\";\nunsafe { x() }\n";
        let files = [
            ("crates/a/tests/b.rs", source),
            ("crates/sys/src/c.rs", source),
            ("crates/sys/src/lib.rs", ""),
        ];
        assert_eq!(places(check, &files), ["crates/a/tests/b.rs:3"]);
    }
}
