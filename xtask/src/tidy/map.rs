//! Checks that the documents describe the files that exist: every file or folder that a Markdown
//! file names from the root exists, and the map in `docs/architecture.md` names every module.

use super::Finding;
use super::links::is_markdown;
use crate::checkout::{Checkout, File};

/// Folders whose paths are recognized in Markdown, also in code blocks.
const ROOTS: &[&str] = &["crates/", "xtask/", "benches/", "docs/"];

const MAP: &str = "docs/architecture.md";

/// Crates without modules that a reader of the map looks for.
const NOT_ON_THE_MAP: &[&str] = &["crates/integration/", "crates/testkit/", "crates/brigade/"];

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
    if let Some(map) = checkout.file(MAP) {
        let missing = checkout.files.iter().filter(|file| is_module(file));
        for file in missing.filter(|file| !map.text.contains(&file.path)) {
            let message = format!("`{}` is not on the map: add a line for it", file.path);
            findings.push(Finding::new(MAP, 1, message));
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

/// Returns `true` for modules of product crates: those at the top of a crate, and in the pool also
/// those of its driver and scheduler.
fn is_module(file: &File) -> bool {
    let Some((product, inner)) = file.path.split_once("/src/") else { return false };
    let in_product = product.starts_with("crates/")
        && !NOT_ON_THE_MAP.iter().any(|path| file.path.starts_with(path));
    let levels = if product == "crates/pool" { 2 } else { 1 };
    let is_root = ["lib.rs", "main.rs"].contains(&inner);
    in_product
        && file.is_rust()
        && !is_root
        && !file.is_test()
        && inner.split('/').count() <= levels
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

    #[test]
    fn a_module_that_is_not_on_the_map_is_found() {
        let map = ("docs/architecture.md", "nothing\n");
        assert_eq!(locations(check, &[SOURCE, map]), ["docs/architecture.md:1"]);
        let map = ("docs/architecture.md", "| `crates/sys/src/clock.rs` | Reads the clock. |\n");
        assert!(locations(check, &[SOURCE, map]).is_empty());
    }
}
