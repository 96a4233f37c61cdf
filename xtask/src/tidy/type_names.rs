//! Checks that no more than three files of a crate have a type of the same name. A reader who
//! searches for it finds the wrong one.

use std::collections::BTreeMap;

use super::Finding;
use crate::checkout::Checkout;

const LIMIT: usize = 3;

const KEYWORDS: [&str; 4] = ["struct ", "enum ", "trait ", "type "];

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let mut places: BTreeMap<(&str, &str), Vec<(&str, usize)>> = BTreeMap::new();
    for file in checkout.rust_files().filter(|file| !file.is_test()) {
        let Some((package, _)) = file.path.split_once("/src/") else { continue };
        let names = file.code_lines().filter_map(|(line, text)| Some((line, name(text)?)));
        for (line, name) in names {
            let files = places.entry((package, name)).or_default();
            // Alternatives for other builds are one type.
            if files.last().is_none_or(|(path, _)| *path != file.path) {
                files.push((&file.path, line));
            }
        }
    }
    let too_often = places.into_iter().filter(|(_, files)| files.len() > LIMIT);
    too_often
        .map(|((package, name), files)| {
            let (path, line) = files[LIMIT];
            let count = files.len();
            let message = format!(
                "{count} files of {package} have a type `{name}`, {LIMIT} at most: put a noun before the name"
            );
            Finding::new(path, line, message)
        })
        .collect()
}

/// Returns the name of the type that a line declares outside of blocks.
fn name(line: &str) -> Option<&str> {
    let rest = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let rest = KEYWORDS.iter().find_map(|keyword| rest.strip_prefix(keyword))?;
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    Some(&rest[..end.unwrap_or(rest.len())])
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::locations;

    #[test]
    fn a_name_in_four_files_of_a_crate_is_found() {
        let own = "//! A.\nstruct State;\n";
        let files = [
            ("crates/a/src/a.rs", own),
            ("crates/a/src/b.rs", "//! B.\n#[cfg(x)]\nenum State {}\n#[cfg(y)]\nenum State {}\n"),
            ("crates/a/src/c.rs", "pub(crate) trait State {}\n"),
            (
                "crates/a/src/d.rs",
                "//! D.\nimpl A for B {\n    type State = u8;\n}\nstruct States;\n",
            ),
            ("crates/a/src/tests.rs", own),
            ("crates/b/src/d.rs", own),
            ("crates/a/src/e.rs", "//! E.\n\npub struct State(u8);\n"),
        ];
        assert_eq!(locations(check, &files), ["crates/a/src/e.rs:3"]);
    }
}
