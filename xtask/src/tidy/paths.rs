//! No file names a folder of the machine that it was written on.

use super::Finding;
use crate::checkout::Checkout;

/// In two parts, so that this file passes its own check.
const FOLDERS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/")];

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &checkout.files {
        for (number, line) in (1..).zip(file.text.lines()) {
            for folder in FOLDERS.iter().filter(|folder| names_absolute(line, folder)) {
                let message = format!(
                    "path of one machine (`{folder}`): name it relative to the checkout, or leave \
                     it out"
                );
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    findings
}

/// Whether `folder` begins a path in `line`: the same letters in the middle of a longer path are
/// somebody else's.
fn names_absolute(line: &str, folder: &str) -> bool {
    let inside = |character: char| character.is_alphanumeric() || "_-.~/})>".contains(character);
    line.match_indices(folder).any(|(start, _)| !line[..start].ends_with(inside))
}

#[cfg(test)]
mod tests {
    use super::{FOLDERS, check};
    use crate::tidy::places;

    #[test]
    fn absolute_paths_are_found_in_files_of_any_kind() {
        for folder in FOLDERS {
            let text = format!("ok\nsee `{folder}notes`\n");
            assert_eq!(places(check, &[("docs/a.md", &text)]), ["docs/a.md:2"], "{folder}");
        }
    }

    #[test]
    fn the_middle_of_a_path_is_no_machine_path() {
        for folder in FOLDERS {
            let text = format!("$TARGET{folder}x https://example.org{folder}y ./a{folder}\n");
            assert!(places(check, &[("docs/a.md", &text)]).is_empty(), "{folder}");
        }
    }
}
