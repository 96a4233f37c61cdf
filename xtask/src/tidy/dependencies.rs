//! Every external dependency of the workspace stands under a comment that says why it is there.

use super::Finding;
use crate::checkout::Checkout;

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let Some(root) = checkout.file("Cargo.toml") else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let mut in_section = false;
    let mut has_reason = false;
    let mut open_lists = 0;
    for (number, line) in (1..).zip(root.text.lines()) {
        let line = line.trim();
        // A list of features may go over several lines; those lines name no dependency.
        let continued = open_lists > 0;
        if in_section {
            open_lists += line.matches(['[', '{']).count();
            open_lists = open_lists.saturating_sub(line.matches([']', '}']).count());
        }
        if continued {
            continue;
        }
        if line.starts_with('[') {
            in_section = line == "[workspace.dependencies]";
            has_reason = false;
        } else if line.is_empty() {
            // A comment speaks for the lines below it, up to the next empty one.
            has_reason = false;
        } else if let Some(comment) = line.strip_prefix('#') {
            has_reason = !comment.trim().is_empty();
        } else if in_section && !has_reason && !line.contains("path =") {
            let name = line.split([' ', '=', '.']).next().unwrap_or(line);
            let message =
                format!("`{name}` has no reason: say in a comment above it what it is needed for");
            findings.push(Finding::new(&root.path, number, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::places;

    #[test]
    fn a_comment_speaks_for_its_block() {
        let root = "[workspace.dependencies]\nours = { path = \"crates/a\" }\n\n# Because.\n\
                    serde = \"1\"\nslab = \"0.4\"\n";
        assert!(places(check, &[("Cargo.toml", root)]).is_empty());
    }

    #[test]
    fn a_dependency_without_reason_is_found() {
        let root = "[workspace]\nresolver = \"3\"\n[workspace.dependencies]\n# Because.\n\
                    a = { version = \"1\", features = [\n    \"x\",\n] }\n\nb = \"1\"\n\
                    [profile.dev]\ndebug = 1\n";
        assert_eq!(places(check, &[("Cargo.toml", root)]), ["Cargo.toml:9"]);
    }
}
