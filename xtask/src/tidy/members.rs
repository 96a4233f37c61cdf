//! Every package takes its lints, its package fields and its dependencies' versions from the
//! workspace.

use super::Finding;
use super::manifest::Manifest;
use crate::checkout::Checkout;

const INHERITED: &[&str] = &["version", "edition", "rust-version", "license", "repository"];

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let root = checkout.file("Cargo.toml").map(|file| Manifest::parse(&file.text));
    let members =
        root.as_ref().and_then(|root| root.get("workspace", "members")).unwrap_or_default();
    let mut findings = Vec::new();
    for file in checkout.manifests() {
        let manifest = Manifest::parse(&file.text);
        if manifest.package().is_none() {
            continue;
        }
        let mut report =
            |line, message: String| findings.push(Finding::new(&file.path, line, message));
        let folder = file.path.trim_end_matches("/Cargo.toml");
        if !members.contains(&format!("\"{folder}\"")) {
            report(
                1,
                format!(
                    "nothing builds this package: add \"{folder}\" to members in the root \
                     Cargo.toml"
                ),
            );
        }
        if manifest.get("lints", "workspace") != Some("true") {
            report(1, "lints are not inherited: add `[lints]` with `workspace = true`".to_owned());
        }
        for field in INHERITED {
            if manifest.get("package", &format!("{field}.workspace")) != Some("true") {
                report(
                    1,
                    format!(
                        "`{field}` is not inherited: write `{field}.workspace = true` in [package]"
                    ),
                );
            }
        }
        for dependency in manifest.all_dependencies() {
            if !dependency.inherits {
                let name = dependency.name;
                report(
                    dependency.line,
                    format!(
                        "`{name}` has a version of its own: write `{name}.workspace = true`, and \
                         the version with its reason in [workspace.dependencies] of the root \
                         Cargo.toml"
                    ),
                );
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::places;

    const ROOT: &str = "[workspace]\nmembers = [\n    \"crates/a\", # comment\n]\n";
    const GOOD: &str = "[package]\nname = \"a\"\nversion.workspace = true\n\
                        edition.workspace = true\nrust-version.workspace = true\n\
                        license.workspace = true\nrepository.workspace = true\n[lints]\n\
                        workspace = true\n[dependencies]\nserde.workspace = true\n";

    #[test]
    fn a_member_that_inherits_everything_passes() {
        assert!(places(check, &[("Cargo.toml", ROOT), ("crates/a/Cargo.toml", GOOD)]).is_empty());
    }

    #[test]
    fn what_is_not_inherited_is_found() {
        for (from, to, line) in [
            ("edition.workspace = true", "edition = \"2024\"", 1),
            ("[lints]\nworkspace = true\n", "", 1),
            ("serde.workspace = true", "serde = \"1\"", 11),
        ] {
            let manifest = GOOD.replace(from, to);
            let found = places(check, &[("Cargo.toml", ROOT), ("crates/a/Cargo.toml", &manifest)]);
            assert_eq!(found, [format!("crates/a/Cargo.toml:{line}")], "{from}");
        }
    }

    #[test]
    fn a_package_that_is_no_member_is_found() {
        let found = places(check, &[("Cargo.toml", ROOT), ("crates/b/Cargo.toml", GOOD)]);
        assert_eq!(found, ["crates/b/Cargo.toml:1"]);
    }
}
