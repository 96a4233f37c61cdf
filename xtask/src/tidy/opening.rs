//! Checks that every Rust file begins with a comment about its contents.

use super::Finding;
use crate::checkout::Checkout;

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    checkout
        .rust_files()
        .filter(|file| !says_something(file.text.lines().next().unwrap_or_default()))
        .map(|file| {
            Finding::new(&file.path, 1, "begin the file with a `//!` comment about its contents")
        })
        .collect()
}

fn says_something(line: &str) -> bool {
    line.strip_prefix("//!").is_some_and(|comment| !comment.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::locations;

    #[test]
    fn a_file_without_an_opening_comment_is_found() {
        let files = [
            ("a.rs", "//! Checks a.\n"),
            ("b.rs", "use std::fmt;\n"),
            ("c.rs", "//!\n"),
            ("d.rs", ""),
        ];
        assert_eq!(locations(check, &files), ["b.rs:1", "c.rs:1", "d.rs:1"]);
    }
}
