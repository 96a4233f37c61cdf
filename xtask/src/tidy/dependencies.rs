//! Checks that a comment gives the reason for every external dependency of the workspace.

use super::Finding;
use super::manifest::Manifest;
use crate::checkout::Checkout;

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let Some(root) = checkout.file("Cargo.toml") else {
        return Vec::new();
    };
    let lines: Vec<&str> = root.text.lines().map(str::trim).collect();
    Manifest::parse(&root.text)
        .workspace_dependencies()
        .into_iter()
        .filter(|dependency| !dependency.is_local)
        .filter(|dependency| !has_reason(&lines[..dependency.line - 1]))
        .map(|dependency| {
            let name = dependency.name;
            let message =
                format!("`{name}` has no reason: say why it is needed in a comment above it");
            Finding::new(&root.path, dependency.line, message)
        })
        .collect()
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
        assert!(locations(check, &[("Cargo.toml", root)]).is_empty());
    }

    #[test]
    fn a_dependency_without_a_reason_is_found() {
        let root = "[workspace]\nresolver = \"3\"\n[workspace.dependencies]\n# Because.\n\
                    a = { version = \"1\", features = [\n    \"x\",\n] }\n\nb = \"1\"\n\
                    [profile.dev]\ndebug = 1\n";
        assert_eq!(locations(check, &[("Cargo.toml", root)]), ["Cargo.toml:9"]);
    }
}
