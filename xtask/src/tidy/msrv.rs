//! Checks that the minimum supported Rust version is declared, and that CONTRIBUTING.md states the
//! same one. The rule about members checks that every package inherits it.

use toml::de::DeValue;

use super::Finding;
use super::manifest::Manifest;
use crate::checkout::Checkout;

const DOCUMENT: &str = "CONTRIBUTING.md";

/// The beginning of the sentence in the document; the version follows.
const SENTENCE: &str = "The minimum supported Rust version is ";

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let Some(root) = checkout.file("Cargo.toml") else {
        return Vec::new();
    };
    let Some(version) = declared(&root.text) else {
        let message =
            "no minimum supported Rust version: set `rust-version` in [workspace.package]";
        return vec![Finding::new(&root.path, 1, message)];
    };
    let message = format!("write `{SENTENCE}{version}`, as in Cargo.toml");
    match checkout.file(DOCUMENT).and_then(|document| stated(&document.text)) {
        Some((_, found)) if found == version => Vec::new(),
        Some((line, _)) => vec![Finding::new(DOCUMENT, line, message)],
        None => vec![Finding::new(DOCUMENT, 1, message)],
    }
}

/// Returns the version that the root manifest declares for all packages.
pub(crate) fn declared(manifest: &str) -> Option<String> {
    let manifest = Manifest::parse(manifest);
    let version = manifest.get(&["workspace", "package", "rust-version"]);
    version.and_then(DeValue::as_str).map(str::to_owned)
}

/// Returns the version that the document states, with its line.
fn stated(document: &str) -> Option<(usize, &str)> {
    (1..).zip(document.lines()).find_map(|(number, line)| {
        let (_, rest) = line.split_once(SENTENCE)?;
        let end = rest.find(|next: char| !next.is_ascii_digit() && next != '.');
        Some((number, rest[..end.unwrap_or(rest.len())].trim_end_matches('.')))
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::locations;

    const ROOT: (&str, &str) = ("Cargo.toml", "[workspace.package]\nrust-version = \"1.88\"\n");

    fn found(document: &str) -> Vec<String> {
        locations(check, &[ROOT, ("CONTRIBUTING.md", document)])
    }

    #[test]
    fn the_document_states_the_declared_version() {
        assert!(found("# A\nThe minimum supported Rust version is 1.88.\n").is_empty());
        assert!(found("The minimum supported Rust version is 1.88 (see b).\n").is_empty());
        assert_eq!(
            found("# A\nThe minimum supported Rust version is 1.8.\n"),
            ["CONTRIBUTING.md:2"]
        );
        assert_eq!(found("# A\n"), ["CONTRIBUTING.md:1"]);
    }

    #[test]
    fn a_missing_declaration_is_found() {
        assert_eq!(locations(check, &[("Cargo.toml", "[workspace]\n")]), ["Cargo.toml:1"]);
    }
}
