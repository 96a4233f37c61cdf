//! Checks that a target which a manifest excludes from tests has none: they would never run.

use toml::de::DeValue;

use super::Finding;
use super::manifest::Manifest;
use crate::checkout::Checkout;

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in checkout.manifests() {
        let manifest = Manifest::parse(&file.text);
        let package = file.path.trim_end_matches("Cargo.toml");
        let library = manifest.get(&["lib"]).map(|library| (library, "src/lib.rs"));
        let programs = manifest.get(&["bin"]).and_then(DeValue::as_array).into_iter().flatten();
        let programs = programs.map(|program| (program.get_ref(), "src/main.rs"));
        for (target, default) in library.into_iter().chain(programs) {
            let field = |key| target.get(key).map(toml::Spanned::get_ref);
            if field("test").and_then(DeValue::as_bool) != Some(false) {
                continue;
            }
            // All files in the folder of its first file: more than belong to it, but simple.
            let path = field("path").and_then(DeValue::as_str).unwrap_or(default);
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let folder = format!("{package}{folder}/");
            for source in checkout.rust_files().filter(|it| it.path.starts_with(&folder)) {
                for (line, _) in source.code_lines().filter(|(_, line)| line.contains("#[test]")) {
                    let message =
                        format!("it never runs: delete a `test = false` in {}", file.path);
                    findings.push(Finding::new(&source.path, line, message));
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::locations;

    #[test]
    fn tests_of_an_excluded_target_are_found() {
        let excluded = "[package]\n[[bin]]\nname = \"b\"\npath = \"b/main.rs\"\ntest = false\n";
        let library = "[package]\n[lib]\ntest = false\n";
        let found = locations(
            check,
            &[
                ("a/Cargo.toml", excluded),
                ("a/src/main.rs", "#[test]\nfn runs() {}\n"),
                ("a/b/part.rs", "// #[test]\n#[test]\nfn never_runs() {}\n"),
                ("c/Cargo.toml", library),
                ("c/src/part.rs", "    #[test]\n"),
            ],
        );
        assert_eq!(found, ["a/b/part.rs:2", "c/src/part.rs:1"]);
    }
}
