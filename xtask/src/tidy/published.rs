//! Checks that each published package has licences, and a README made of its front page, which has
//! an example and says for whom the package is.
//!
//! `cargo xtask tidy --bless` writes the READMEs, so that their examples are those that run as
//! tests.

use std::fmt::Write as _;

use toml::de::DeValue;

use super::Finding;
use super::manifest::Manifest;
use crate::checkout::{self, Checkout, File};

const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// The front page of a package with the keyword `internal`; that of others names the facade.
const INTERNAL: &str =
    "Internal to Brigade: any release may change its interface. Programs use the facade `brigade`.";
const FACADE: &str = "the facade";

/// The repository, whose documents the READMEs point to.
const REPOSITORY: &str = "https://github.com/brigade-rs/brigade";

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in published(checkout) {
        let manifest = Manifest::parse(&file.text);
        let mut report = |message: String| findings.push(Finding::new(&file.path, 1, message));
        let folder = folder(file);
        for licence in LICENCES {
            if checkout.file(&format!("{folder}/{licence}")).is_none() {
                report(format!("the package has no licence: ln -s ../../{licence} {folder}/"));
            }
        }
        let path = format!("{folder}/README.md");
        let expected = expected(checkout, file);
        let is_library = expected.is_some();
        match checkout.file(&path) {
            None => report("the package has no README: `cargo xtask tidy --bless`".to_owned()),
            Some(readme) if expected.is_some_and(|expected| expected != readme.text) => {
                let message = "differs from the front page: `cargo xtask tidy --bless`";
                findings.push(Finding::new(&path, 1, message));
            }
            Some(readme) if is_library => {
                let lacks = lacks(&readme.text, &manifest);
                findings.extend(lacks.map(|message| Finding::new(&path, 1, message)));
            }
            Some(_) => {}
        }
    }
    findings
}

/// Returns what the README of a library lacks.
fn lacks(readme: &str, manifest: &Manifest<'_>) -> Option<String> {
    if !readme.contains("```rust\n") {
        return Some("has no example: add one to the front page".to_owned());
    }
    let keywords = manifest.get(&["package", "keywords"]).and_then(DeValue::as_array);
    let mut keywords = keywords.into_iter().flatten();
    let is_internal = keywords.any(|word| word.get_ref().as_str() == Some("internal"));
    if is_internal != readme.contains(INTERNAL) {
        return Some(format!("with the keyword `internal`, and only then, write {INTERNAL:?}"));
    }
    let says_so = is_internal || manifest.package() == Some("brigade") || readme.contains(FACADE);
    (!says_so).then(|| format!("say how programs use it: alone, or through {FACADE}"))
}

/// Writes the READMEs of all published libraries.
pub(super) fn bless(checkout: &Checkout) -> Result<String, String> {
    let mut count = 0;
    for file in published(checkout) {
        let Some(text) = expected(checkout, file) else { continue };
        let path = format!("{}/README.md", folder(file));
        std::fs::write(checkout::root().join(&path), text)
            .map_err(|error| format!("cannot write {path}: {error}"))?;
        count += 1;
    }
    Ok(format!("wrote {count} READMEs"))
}

/// Returns the names of the published packages.
pub(crate) fn names(checkout: &Checkout) -> Vec<String> {
    let name = |file: &File| Manifest::parse(&file.text).package().map(str::to_owned);
    published(checkout).filter_map(name).collect()
}

/// Returns the manifests of the published packages.
pub(super) fn published(checkout: &Checkout) -> impl Iterator<Item = &File> {
    checkout.manifests().filter(|file| {
        let manifest = Manifest::parse(&file.text);
        let is_private = manifest
            .get(&["package", "publish"])
            .is_some_and(|publish| publish.as_bool() == Some(false));
        manifest.package().is_some() && !is_private
    })
}

fn folder(manifest: &File) -> &str {
    manifest.path.trim_end_matches("/Cargo.toml")
}

/// Returns the README of a library; `None` for a program.
fn expected(checkout: &Checkout, manifest: &File) -> Option<String> {
    let front = checkout.file(&format!("{}/src/lib.rs", folder(manifest)))?;
    let name = Manifest::parse(&manifest.text).package()?.to_owned();
    Some(readme(&name, &front.text))
}

/// Makes a README of the documentation of a crate.
fn readme(name: &str, front: &str) -> String {
    let mut text = format!("# {name}\n\n");
    let mut is_code = false;
    for line in front.lines().map_while(|line| line.strip_prefix("//!")) {
        let line = line.strip_prefix(' ').unwrap_or(line);
        if let Some(language) = line.strip_prefix("```") {
            is_code = !is_code;
            let is_rust = is_code && (language.is_empty() || language.starts_with("no_run"));
            text.push_str(if is_rust { "```rust" } else { line });
        } else if is_code && (line == "#" || line.starts_with("# ")) {
            // Hidden lines of an example.
            continue;
        } else if is_code {
            text.push_str(line);
        } else {
            let deeper = if line.starts_with('#') { "#" } else { "" };
            text.push_str(deeper);
            text.push_str(&without_links(line));
        }
        text.push('\n');
    }
    format!("{text}\n---\n\nPart of [Brigade]({REPOSITORY}), under MIT or Apache-2.0.\n")
}

/// Replaces links to items, which lead nowhere outside of the documentation, by their texts.
fn without_links(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("[`") {
        let Some((item, behind)) = after.split_once("`]") else { break };
        text.push_str(before);
        // Writing to a string cannot fail.
        let _ = write!(text, "`{item}`");
        rest = behind;
        let target = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        if let Some((_, behind)) = target {
            rest = behind;
        }
    }
    without_paths(&(text + rest))
}

/// Replaces links to paths of items by their texts.
fn without_paths(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        let Some((target, behind)) = after.split_once(')') else { break };
        match before.rsplit_once('[') {
            Some((start, name)) if target.contains("::") => {
                text.push_str(start);
                text.push_str(name);
            }
            _ => {
                let _ = write!(text, "{before}]({target})");
            }
        }
        rest = behind;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::{INTERNAL, check, readme};
    use crate::tidy::locations;

    #[test]
    fn a_readme_has_the_front_page_without_links_and_hidden_lines() {
        let front = "//! Adds. See [`add`] and [`Sum`](sum::Sum).\n//!\n//! # Example\n//! ```no_run\n\
                     //! # use x;\n//! add(1);\n//! ```\n\npub fn add() {}\n";
        let text = readme("adder", front);
        let expected =
            "# adder\n\nAdds. See `add` and `Sum`.\n\n## Example\n```rust\nadd(1);\n```\n\n---";
        assert!(text.starts_with(expected), "{text}");
    }

    const FRONT: &str =
        "//! B.\n//!\n//! Alone, or in the facade.\n//!\n//! ```\n//! b();\n//! ```\n";

    /// Returns what is found in a package with everything but that.
    fn found(manifest: &str, front: &str) -> Vec<String> {
        let readme = readme("b", front);
        let files = [
            ("b/Cargo.toml", manifest),
            ("b/src/lib.rs", front),
            ("b/README.md", &readme),
            ("b/LICENSE-MIT", ""),
            ("b/LICENSE-APACHE", ""),
            ("c/Cargo.toml", "[package]\nname = \"c\"\npublish = false\n"),
        ];
        locations(check, &files)
    }

    #[test]
    fn a_front_page_has_an_example_and_says_for_whom_it_is() {
        let public = "[package]\nname = \"b\"\n";
        let internal = "[package]\nname = \"b\"\nkeywords = [\"internal\"]\n";
        let marked = FRONT.replace("Alone, or in the facade.", INTERNAL);
        assert!(found(public, FRONT).is_empty());
        assert!(found(internal, &marked).is_empty());
        let silent = FRONT.replace("facade", "x");
        let texts = FRONT.replace("```", "");
        for (manifest, front) in
            [(public, &*silent), (public, &marked), (internal, FRONT), (public, &texts)]
        {
            assert_eq!(found(manifest, front), ["b/README.md:1"], "{manifest}{front}");
        }
    }

    #[test]
    fn packages_without_licences_or_readme_are_found() {
        let bare = "[package]\nname = \"a\"\n";
        assert_eq!(locations(check, &[("a/Cargo.toml", bare)]), ["a/Cargo.toml:1"; 3]);
        let readme = readme("a", FRONT);
        let changed = [
            ("a/Cargo.toml", bare),
            ("a/src/lib.rs", "//! Other.\n"),
            ("a/README.md", &readme),
            ("a/LICENSE-MIT", ""),
            ("a/LICENSE-APACHE", ""),
        ];
        assert_eq!(locations(check, &changed), ["a/README.md:1"]);
    }
}
