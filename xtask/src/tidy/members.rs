//! Checks that every package inherits its lints, its package fields and the versions of its
//! dependencies from the workspace.

use super::Finding;
use super::manifest::Manifest;
use crate::checkout::Checkout;

const INHERITED: &[&str] = &["version", "edition", "rust-version", "license", "repository"];

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let root = checkout.file("Cargo.toml").map(|file| Manifest::parse(&file.text));
    let members = root.as_ref().and_then(|root| root.get(&["workspace", "members"])?.as_array());
    let members: Vec<&str> =
        members.into_iter().flatten().filter_map(|member| member.get_ref().as_str()).collect();
    let mut findings = Vec::new();
    for file in checkout.manifests() {
        let manifest = Manifest::parse(&file.text);
        if manifest.package().is_none() {
            continue;
        }
        let mut report =
            |line, message: String| findings.push(Finding::new(&file.path, line, message));
        let folder = file.path.trim_end_matches("/Cargo.toml");
        if !members.contains(&folder) {
            report(
                1,
                format!(
                    "this package is not a member of the workspace: add \"{folder}\" to `members` \
                     in the root Cargo.toml"
                ),
            );
        }
        if !manifest.is_true(&["lints", "workspace"]) {
            report(1, "lints are not inherited: add `[lints]` with `workspace = true`".to_owned());
        }
        for field in INHERITED {
            if !manifest.is_true(&["package", field, "workspace"]) {
                report(
                    1,
                    format!(
                        "`{field}` is not inherited: write `{field}.workspace = true` in [package]"
                    ),
                );
            }
        }
        for dependency in manifest.all_dependencies() {
            // A dependency of tests by path alone has no version, and publishing drops it.
            if !dependency.inherits && !dependency.is_local {
                let name = dependency.name;
                report(
                    dependency.line,
                    format!(
                        "`{name}` has its own version: write `{name}.workspace = true`, and add \
                         the version and its reason to [workspace.dependencies] in the root \
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
    use crate::tidy::locations;

    const ROOT: &str = "[workspace]\nmembers = [\n    \"crates/a\", # comment\n]\n";
    const GOOD: &str = "[package]\nname = \"a\"\nversion.workspace = true\n\
                        edition.workspace = true\nrust-version.workspace = true\n\
                        license.workspace = true\nrepository.workspace = true\n[lints]\n\
                        workspace = true\n[dependencies]\nserde.workspace = true\n";

    #[test]
    fn a_member_that_inherits_everything_passes() {
        assert!(
            locations(check, &[("Cargo.toml", ROOT), ("crates/a/Cargo.toml", GOOD)]).is_empty()
        );
    }

    #[test]
    fn fields_that_are_not_inherited_are_found() {
        for (from, to, line) in [
            ("edition.workspace = true", "edition = \"2024\"", 1),
            ("[lints]\nworkspace = true\n", "", 1),
            ("serde.workspace = true", "serde = \"1\"", 11),
        ] {
            let manifest = GOOD.replace(from, to);
            let found =
                locations(check, &[("Cargo.toml", ROOT), ("crates/a/Cargo.toml", &manifest)]);
            assert_eq!(found, [format!("crates/a/Cargo.toml:{line}")], "{from}");
        }
    }

    #[test]
    fn a_dependency_by_path_passes() {
        let manifest = format!("{GOOD}[dev-dependencies]\nb = {{ path = \"../b\" }}\n");
        let found = locations(check, &[("Cargo.toml", ROOT), ("crates/a/Cargo.toml", &manifest)]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_package_that_is_not_a_member_is_found() {
        let found = locations(check, &[("Cargo.toml", ROOT), ("crates/b/Cargo.toml", GOOD)]);
        assert_eq!(found, ["crates/b/Cargo.toml:1"]);
    }
}
