//! Checks that every file or folder that a Markdown file names from the root exists.

use super::Finding;
use super::links::is_markdown;
use crate::checkout::Checkout;

/// Folders whose paths are recognized in Markdown, also in code blocks.
const ROOTS: &[&str] = &["crates/", "xtask/", "benches/", "docs/"];

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in checkout.files.iter().filter(|file| is_markdown(&file.path)) {
        for (line, path) in paths(&file.text) {
            if !exists(checkout, path) {
                let message = format!("there is no `{path}`: correct the path");
                findings.push(Finding::new(&file.path, line, message));
            }
        }
    }
    findings
}

/// Returns the paths below [`ROOTS`], with their lines.
fn paths(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
    (1..).zip(text.lines()).flat_map(move |(number, line)| {
        // A link's target is relative to its file, and checked as a link.
        let words = line.split(move |c| !is_part(c)).map(|word| word.trim_end_matches('.'));
        words
            .filter(|word| ROOTS.iter().any(|root| word.starts_with(root)))
            .map(move |word| (number, word))
    })
}

fn exists(checkout: &Checkout, path: &str) -> bool {
    let folder = format!("{}/", path.trim_end_matches('/'));
    checkout.file(path).is_some()
        || checkout.files.iter().any(|file| file.path.starts_with(&folder))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::locations;

    const SOURCE: (&str, &str) = ("crates/sys/src/clock.rs", "");

    #[test]
    fn a_missing_file_is_found_also_in_a_code_block() {
        let text = "see `crates/sys/src/clock.rs`.\n```text\nfirst crates/sys/src/gone.rs\n```\n";
        assert_eq!(locations(check, &[SOURCE, ("README.md", text)]), ["README.md:3"]);
    }

    #[test]
    fn a_folder_exists_if_a_file_is_in_it() {
        let text = "crates/sys and crates/sys/src/.\n";
        assert!(locations(check, &[SOURCE, ("README.md", text)]).is_empty());
    }
}
