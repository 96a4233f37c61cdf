//! Checks that every external dependency of the workspace has a reason in a comment, is used by a
//! package, and asks for no less than the version with which everything is tested.

use super::Finding;
use super::manifest::Manifest;
use crate::checkout::Checkout;

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let Some(root) = checkout.file("Cargo.toml") else {
        return Vec::new();
    };
    let lines: Vec<&str> = root.text.lines().map(str::trim).collect();
    let lock = checkout.file("Cargo.lock").map_or("", |lock| lock.text.as_str());
    let manifest = Manifest::parse(&root.text);
    let mut findings = Vec::new();
    for dependency in manifest.workspace_dependencies().into_iter().filter(|it| !it.is_local) {
        let name = &dependency.name;
        let mut report = |message: String| {
            findings.push(Finding::new(&root.path, dependency.line, message));
        };
        if !has_reason(&lines[..dependency.line - 1]) {
            report(format!("`{name}` has no reason: say why it is needed in a comment above it"));
        }
        if !is_used(checkout, name) {
            report(format!("no package uses `{name}`: remove it"));
        }
        let tested = locked(lock, name);
        if !tested.is_empty() && !tested.contains(&dependency.version.as_str()) {
            report(format!(
                "`{name}` is tested with {}, so ask for no less: older versions may lack something",
                tested.join(" and ")
            ));
        }
    }
    findings
}

fn is_used(checkout: &Checkout, name: &str) -> bool {
    let mut manifests = checkout.manifests();
    let of = |text| Manifest::parse(text).all_dependencies();
    manifests.any(|file| of(&file.text).iter().any(|it| it.inherits && it.name == name))
}

/// Returns the versions of a package in the lock file, without what follows a `+`.
fn locked<'a>(lock: &'a str, name: &str) -> Vec<&'a str> {
    let name = format!("name = \"{name}\"");
    let packages = lock.split("[[package]]").filter(|package| package.lines().any(|it| it == name));
    let version = |package: &'a str| {
        let version = package.lines().find_map(|line| line.strip_prefix("version = \""))?;
        version.split(['"', '+']).next()
    };
    packages.filter_map(version).collect()
}

/// Returns `true` if the last block of `lines` contains a comment, which covers the lines below it
/// up to the next empty one.
fn has_reason(lines: &[&str]) -> bool {
    let block = lines.iter().rev().take_while(|line| !line.is_empty());
    block.filter_map(|line| line.strip_prefix('#')).any(|comment| !comment.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::locations;

    #[test]
    fn a_comment_covers_its_block() {
        let root = "[workspace.dependencies]\nours = { path = \"crates/a\" }\n\n# Because.\n\
                    serde = \"1\"\nslab = \"0.4\"\n";
        let user =
            ("a/Cargo.toml", "[dependencies]\nserde.workspace = true\nslab.workspace = true\n");
        assert!(locations(check, &[("Cargo.toml", root), user]).is_empty());
    }

    #[test]
    fn a_dependency_without_a_reason_is_found() {
        let root = "[workspace]\nresolver = \"3\"\n[workspace.dependencies]\n# Because.\n\
                    a = { version = \"1\", features = [\n    \"x\",\n] }\n\nb = \"1\"\n\
                    [profile.dev]\ndebug = 1\n";
        let user = ("a/Cargo.toml", "[dependencies]\na.workspace = true\nb.workspace = true\n");
        assert_eq!(locations(check, &[("Cargo.toml", root), user]), ["Cargo.toml:9"]);
    }

    #[test]
    fn a_dependency_that_nobody_uses_is_found() {
        let root = "[workspace.dependencies]\n# Because.\na = \"1\"\n";
        assert_eq!(locations(check, &[("Cargo.toml", root)]), ["Cargo.toml:3"]);
    }

    #[test]
    fn a_version_below_the_tested_one_is_found() {
        let user = ("a/Cargo.toml", "[dependencies]\na.workspace = true\n");
        let lock =
            "[[package]]\nname = \"a\"\nversion = \"1.2.3+x\"\n\n[[package]]\nname = \"b\"\n";
        let found = |version: &str| {
            let root = format!("[workspace.dependencies]\n# Because.\na = \"{version}\"\n");
            locations(check, &[("Cargo.toml", &root), ("Cargo.lock", lock), user]).len()
        };
        assert_eq!((found("1"), found("1.2.3")), (1, 0));
    }
}
