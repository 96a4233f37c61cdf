//! Checks that `unsafe` is used only in crates/sys and, for tests, in crates/testkit-sys, where
//! clippy requires a `SAFETY` comment for each block.

use super::Finding;
use crate::checkout::{Checkout, File};
use crate::tokens::occurrences;

const ALLOWED: [&str; 2] = ["crates/sys/", "crates/testkit-sys/"];
const FORBID: &str = "#![forbid(unsafe_code)]";

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_allowed = |path: &str| ALLOWED.iter().any(|folder| path.starts_with(folder));
    for file in checkout.rust_files().filter(|file| !is_allowed(&file.path)) {
        if is_crate_root(file) && !file.code.contains(FORBID) {
            findings.push(Finding::new(
                &file.path,
                1,
                format!("add `{FORBID}` below the opening comment"),
            ));
        }
        for (number, line) in file.code_lines() {
            if occurrences(line, "unsafe").next().is_some() {
                let message =
                    "`unsafe` outside crates/sys: move the operation there, behind a safe function";
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    findings
}

/// Returns `true` for roots of libraries and programs. Each test and example is a root too; the
/// second rule covers them.
fn is_crate_root(file: &File) -> bool {
    file.path.ends_with("src/lib.rs")
        || file.path.ends_with("src/main.rs")
        || file.path.contains("/src/bin/")
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::locations;

    #[test]
    fn a_root_that_does_not_forbid_unsafe_is_found() {
        let good = "//! A.\n#![forbid(unsafe_code)]\n";
        let bad = "//! A. `#![forbid(unsafe_code)]`\n";
        let files = [
            ("crates/a/src/lib.rs", good),
            ("crates/b/src/lib.rs", bad),
            ("crates/b/src/bin/c.rs", bad),
            ("b/src/d.rs", bad),
        ];
        assert_eq!(locations(check, &files), ["crates/b/src/lib.rs:1", "crates/b/src/bin/c.rs:1"]);
    }

    #[test]
    fn unsafe_is_found_only_in_code_outside_sys() {
        let source = "// unsafe\nlet text = \"unsafe\";\nunsafe { x() }\n";
        let files = [
            ("crates/a/tests/b.rs", source),
            ("crates/sys/src/c.rs", source),
            ("crates/sys/src/lib.rs", ""),
            ("crates/testkit-sys/src/d.rs", source),
        ];
        assert_eq!(locations(check, &files), ["crates/a/tests/b.rs:3"]);
    }
}
