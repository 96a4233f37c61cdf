//! Checks that each fence says which one it pairs with. A fence without a partner orders nothing,
//! and processors with a weak order of memory are the only ones that show it.

use super::Finding;
use crate::checkout::{Checkout, File};
use crate::tokens::occurrences;

/// Begins the comment.
const PARTNER: &str = "Pairs with";

/// A comment is at most this many lines above its fence.
const ABOVE: usize = 4;

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let files = checkout.rust_files().filter(|file| !file.is_test() && !is_model(file));
    files.flat_map(alone).collect()
}

/// Returns `true` for models that loom checks, whose code stands for that of others.
fn is_model(file: &File) -> bool {
    file.path.contains("/loom")
}

fn alone(file: &File) -> Vec<Finding> {
    let lines: Vec<&str> = file.text.lines().collect();
    let first_test_line = file.first_test_line();
    let is_fence = |code: &str| {
        // A function that passes an ordering on is not a fence of its own.
        code.contains("fence(")
            && ["SeqCst", "Acquire", "Release", "AcqRel"]
                .iter()
                .any(|ordering| occurrences(code, ordering).next().is_some())
    };
    file.code_lines()
        .filter(|(number, code)| *number < first_test_line && is_fence(code))
        .filter(|(number, _)| {
            let above = &lines[number.saturating_sub(1 + ABOVE)..number - 1];
            !above.iter().any(|line| line.contains("//") && line.contains(PARTNER))
        })
        .map(|(number, _)| {
            let message = "a fence without a partner: add a comment `// Pairs with ...` above it";
            Finding::new(&file.path, number, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::locations;

    #[test]
    fn a_fence_names_its_partner() {
        let alone = "//! A.\nfn a() {\n    fence(Ordering::SeqCst);\n}\n";
        let paired = "//! A.\nfn a() {\n    // Pairs with `b`.\n    W::fence(Acquire);\n}\n";
        let passed_on = "//! A.\nfn fence(ordering: Ordering) {\n    atomic::fence(ordering);\n}\n";
        let files = [
            ("crates/a/src/a.rs", alone),
            ("crates/a/src/b.rs", paired),
            ("crates/a/src/c.rs", passed_on),
            ("crates/a/src/loom.rs", alone),
            ("crates/a/tests/a.rs", alone),
        ];
        assert_eq!(locations(check, &files), ["crates/a/src/a.rs:3"]);
    }
}
