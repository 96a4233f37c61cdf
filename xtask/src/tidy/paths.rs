//! Checks that no file contains an absolute path of a developer's machine.

use super::Finding;
use crate::checkout::Checkout;

/// Folders whose paths are refused, in two parts, so that this file passes its own check.
const FOLDERS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/")];

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &checkout.files {
        for (number, line) in (1..).zip(file.text.lines()) {
            for folder in FOLDERS.iter().filter(|folder| names_absolute(line, folder)) {
                let message = format!(
                    "path of one machine (`{folder}`): make it relative to the checkout, or leave \
                     it out"
                );
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    findings
}

/// Returns `true` if a path in `line` begins with `folder`; a match inside a longer path does not
/// count.
fn names_absolute(line: &str, folder: &str) -> bool {
    let inside = |character: char| character.is_alphanumeric() || "_-.~/})>".contains(character);
    line.match_indices(folder).any(|(start, _)| !line[..start].ends_with(inside))
}

#[cfg(test)]
mod tests {
    use super::{FOLDERS, check};
    use crate::tidy::locations;

    #[test]
    fn absolute_paths_are_found_in_all_files() {
        for folder in FOLDERS {
            let text = format!("ok\nsee `{folder}notes`\n");
            assert_eq!(locations(check, &[("docs/a.md", &text)]), ["docs/a.md:2"], "{folder}");
        }
    }

    #[test]
    fn a_match_inside_a_longer_path_is_allowed() {
        for folder in FOLDERS {
            let text = format!("$TARGET{folder}x https://example.org{folder}y ./a{folder}\n");
            assert!(locations(check, &[("docs/a.md", &text)]).is_empty(), "{folder}");
        }
    }
}
