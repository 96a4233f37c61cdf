//! Checks that the name of a test has at most 60 characters. It says one promise.

use super::Finding;
use crate::checkout::Checkout;

const LIMIT: usize = 60;

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in checkout.rust_files() {
        let mut is_test = false;
        for (number, line) in file.code_lines() {
            let line = line.trim();
            if line.starts_with("#[") {
                is_test |= line == "#[test]";
                continue;
            }
            let name = line.strip_prefix("fn ").and_then(|rest| rest.split_once('('));
            if let Some((name, _)) = name.filter(|(name, _)| is_test && name.len() > LIMIT) {
                let message = format!(
                    "the name `{name}` has {} characters, {LIMIT} at most: say one promise",
                    name.len()
                );
                findings.push(Finding::new(&file.path, number, message));
            }
            is_test &= line.is_empty();
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::locations;

    #[test]
    fn only_the_names_of_tests_are_limited() {
        let (long, short) = ("x".repeat(61), "x".repeat(60));
        let text = format!(
            "#[test]\nfn {long}() {{}}\n#[test]\nfn {short}() {{}}\nfn {long}() {{}}\n\
             #[test]\n#[cfg(unix)]\nfn {long}() {{}}\n"
        );
        let found = locations(check, &[("crates/a/src/lib.rs", &text)]);
        assert_eq!(found, ["crates/a/src/lib.rs:2", "crates/a/src/lib.rs:8"]);
    }
}
