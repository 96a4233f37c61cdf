//! Checks that the manifest of each published package has what a registry shows: where its
//! documentation and its README are, keywords of its own, categories, and what its documentation
//! is built with.

use toml::de::DeValue;

use super::Finding;
use super::manifest::Manifest;
use super::published::published;
use crate::checkout::Checkout;

/// The targets whose documentation is built.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// A registry takes no more.
const MAX_WORDS: usize = 5;

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut known: Vec<Vec<String>> = Vec::new();
    for file in published(checkout) {
        let manifest = Manifest::parse(&file.text);
        let mut report = |message: String| findings.push(Finding::new(&file.path, 1, message));
        let name = manifest.package().unwrap_or_default();
        let values =
            [("documentation", format!("https://docs.rs/{name}")), ("readme", "README.md".into())];
        for (key, value) in values {
            if text(&manifest, key) != Some(&value) {
                report(format!("write `{key} = \"{value}\"` in [package]"));
            }
        }
        for key in ["keywords", "categories"] {
            if !(1..=MAX_WORDS).contains(&words(&manifest, &["package", key]).len()) {
                report(format!("give [package] one to {MAX_WORDS} `{key}`, by which it is found"));
            }
        }
        let keywords = words(&manifest, &["package", "keywords"]);
        if known.contains(&keywords) {
            report(
                "another package has the same `keywords`: name what only this one is".to_owned(),
            );
        }
        known.push(keywords);
        let docs = |key| ["package", "metadata", "docs", "rs", key];
        if !manifest.is_true(&docs("all-features")) {
            report("its documentation lacks the features: add `[package.metadata.docs.rs]` with `all-features = true`".to_owned());
        }
        if words(&manifest, &docs("targets")) != TARGETS {
            report(format!("write `targets = {TARGETS:?}` in [package.metadata.docs.rs]"));
        }
    }
    findings
}

fn text<'a>(manifest: &'a Manifest<'_>, key: &str) -> Option<&'a str> {
    manifest.get(&["package", key]).and_then(DeValue::as_str)
}

/// Returns the texts of a list; none if there is no list.
fn words(manifest: &Manifest<'_>, path: &[&str]) -> Vec<String> {
    let list = manifest.get(path).and_then(DeValue::as_array);
    let texts = list.into_iter().flatten().filter_map(|word| word.get_ref().as_str());
    texts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::locations;

    const WHOLE: &str = "[package]\nname = \"b\"\ndocumentation = \"https://docs.rs/b\"\n\
        readme = \"README.md\"\nkeywords = [\"x\"]\ncategories = [\"os\"]\n\
        [package.metadata.docs.rs]\nall-features = true\n\
        targets = [\"x86_64-unknown-linux-gnu\", \"aarch64-unknown-linux-gnu\"]\n";

    #[test]
    fn a_package_with_everything_passes() {
        let private = "[package]\nname = \"c\"\npublish = false\n";
        let files = [("b/Cargo.toml", WHOLE), ("c/Cargo.toml", private)];
        assert!(locations(check, &files).is_empty());
    }

    #[test]
    fn each_entry_that_is_missing_is_found() {
        for (from, to) in [
            ("docs.rs/b", "docs.rs/brigade"),
            ("readme = \"README.md\"\n", ""),
            ("keywords = [\"x\"]\n", ""),
            ("[\"x\"]", "[\"1\", \"2\", \"3\", \"4\", \"5\", \"6\"]"),
            ("categories = [\"os\"]\n", ""),
            ("all-features = true\n", ""),
            (", \"aarch64-unknown-linux-gnu\"", ""),
        ] {
            let text = WHOLE.replace(from, to);
            assert_eq!(locations(check, &[("b/Cargo.toml", &text)]), ["b/Cargo.toml:1"], "{from}");
        }
    }

    #[test]
    fn keywords_of_another_package_are_found() {
        let other = WHOLE.replace("\"b\"", "\"d\"").replace("docs.rs/b", "docs.rs/d");
        let files = [("b/Cargo.toml", WHOLE), ("d/Cargo.toml", &other)];
        assert_eq!(locations(check, &files), ["d/Cargo.toml:1"]);
    }
}
