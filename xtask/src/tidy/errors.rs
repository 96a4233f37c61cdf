//! Checks that no public error derives `Debug`: a `main` that returns it would print the names of
//! variants instead of what failed and what to do.

use super::Finding;
use crate::checkout::{Checkout, File};

/// The crates whose users see their errors.
const LIBRARIES: &str = "crates/";

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let files = checkout.rust_files();
    let files =
        files.filter(|file| file.path.starts_with(LIBRARIES) && file.path.contains("/src/"));
    files.flat_map(derived).collect()
}

fn derived(file: &File) -> Vec<Finding> {
    let lines: Vec<&str> = file.code.lines().collect();
    let end = file.first_test_line().saturating_sub(1).min(lines.len());
    let is_public = |from: usize| {
        let mut items = lines[from..].iter().map(|line| line.trim_start());
        let item = items.find(|line| {
            ["pub ", "pub(", "enum ", "struct "].iter().any(|it| line.starts_with(it))
        });
        item.is_some_and(|item| item.starts_with("pub "))
    };
    let is_error = |line: &str| {
        let line = line.trim_start();
        line.starts_with("#[derive(") && line.contains("Debug") && line.contains("Error)")
    };
    (0..end)
        .filter(|index| is_error(lines[*index]) && is_public(index + 1))
        .map(|index| {
            let message = "a `main` that returns this error prints its `Debug`: do not derive it, \
                           use `brigade_sys::debug_as_text!`";
            Finding::new(&file.path, index + 1, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::locations;

    #[test]
    fn a_public_error_with_a_derived_debug_is_found() {
        let text = "#[derive(Debug, thiserror::Error)]\n#[error(\"x\")]\npub enum A { B }\n\
                    #[derive(Debug, thiserror::Error)]\npub(crate) struct C;\n\
                    #[derive(Clone, thiserror::Error)]\npub struct D;\n\
                    #[cfg(test)]\nmod tests {\n#[derive(Debug, thiserror::Error)]\npub struct E;\n}\n";
        assert_eq!(
            locations(check, &[("crates/a/src/error.rs", text)]),
            ["crates/a/src/error.rs:1"]
        );
    }
}
