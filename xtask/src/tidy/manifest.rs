//! Reads the entries of a `Cargo.toml` that the rules check, with their lines.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The contents of a `Cargo.toml`.
pub(super) struct Manifest<'a> {
    text: &'a str,
    root: DeTable<'a>,
}

/// A dependency of a package: normal, for its build script, or for tests.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Dependency {
    pub(super) name: String,
    /// Counted from 1.
    pub(super) line: usize,
    /// `true` if version and features come from `[workspace.dependencies]`.
    pub(super) inherits: bool,
    /// `true` if it is a package of this repository.
    pub(super) is_local: bool,
    /// The version that it asks for; empty without one.
    pub(super) version: String,
}

impl<'a> Manifest<'a> {
    /// Parses a manifest. An invalid one has no entries: cargo refuses it before any rule runs.
    pub(super) fn parse(text: &'a str) -> Self {
        let root = DeTable::parse(text).map(Spanned::into_inner).unwrap_or_default();
        Self { text, root }
    }

    /// Returns the value at a path of keys, such as `["package", "name"]`.
    pub(super) fn get(&self, path: &[&str]) -> Option<&DeValue<'a>> {
        let (first, rest) = path.split_first()?;
        let first = self.root.get(*first)?.get_ref();
        rest.iter().try_fold(first, |value, key| Some(value.get(*key)?.get_ref()))
    }

    /// Returns the name of the package, if the manifest has one.
    pub(super) fn package(&self) -> Option<&str> {
        self.get(&["package", "name"])?.as_str()
    }

    /// Returns `true` if the value at `path` is `true`.
    pub(super) fn is_true(&self, path: &[&str]) -> bool {
        self.get(path).and_then(DeValue::as_bool) == Some(true)
    }

    /// Returns the dependencies that a user of the package gets, without those of tests and
    /// examples.
    pub(super) fn dependencies(&self) -> Vec<Dependency> {
        self.dependencies_of(&["dependencies", "build-dependencies"])
    }

    /// Returns dependencies of every kind.
    pub(super) fn all_dependencies(&self) -> Vec<Dependency> {
        self.dependencies_of(&["dependencies", "build-dependencies", "dev-dependencies"])
    }

    /// Returns the entries of `[workspace.dependencies]`.
    pub(super) fn workspace_dependencies(&self) -> Vec<Dependency> {
        let table = self.get(&["workspace", "dependencies"]).and_then(DeValue::as_table);
        self.entries(table.into_iter())
    }

    /// Returns dependencies of these kinds for all platforms, in the order of lines.
    fn dependencies_of(&self, kinds: &[&str]) -> Vec<Dependency> {
        let targets = self.get(&["target"]).and_then(DeValue::as_table);
        let targets = targets.into_iter().flat_map(DeTable::values);
        let tables = targets.filter_map(|target| target.get_ref().as_table());
        let sections = tables.chain([&self.root]).flat_map(|table| {
            kinds.iter().filter_map(|kind| table.get(*kind)?.get_ref().as_table())
        });
        self.entries(sections)
    }

    fn entries<'b>(&self, tables: impl Iterator<Item = &'b DeTable<'a>>) -> Vec<Dependency>
    where
        'a: 'b,
    {
        let mut found: Vec<Dependency> = tables
            .flatten()
            .map(|(name, value)| {
                let field = |key| value.get_ref().get(key).map(Spanned::get_ref);
                Dependency {
                    name: name.get_ref().to_string(),
                    line: 1 + self.text[..name.span().start].matches('\n').count(),
                    inherits: field("workspace").and_then(DeValue::as_bool) == Some(true),
                    is_local: field("path").is_some(),
                    version: field("version")
                        .or(Some(value.get_ref()))
                        .and_then(DeValue::as_str)
                        .unwrap_or_default()
                        .to_owned(),
                }
            })
            .collect();
        found.sort_by_key(|dependency| dependency.line);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::Manifest;

    const TEXT: &str = r#"
[package]
name = "brigade-wire" # the package
keywords = [
    "a", # = not a key
]

[dependencies]
brigade-sys.workspace = true
serde = { workspace = true, features = ["rc"] }
stray = "1"

[target.'cfg(loom)'.dependencies]
loom.workspace = true

[dependencies.own]
workspace = true
features = ["x"]

[dev-dependencies]
proptest.workspace = true

[lints]
workspace = true
"#;

    #[test]
    fn values_are_found_by_path() {
        let manifest = Manifest::parse(TEXT);
        assert_eq!(manifest.package(), Some("brigade-wire"));
        assert!(manifest.is_true(&["lints", "workspace"]));
        assert!(!manifest.is_true(&["package", "name"]));
        assert!(manifest.get(&["dependencies", "name"]).is_none());
    }

    #[test]
    fn dependencies_of_every_spelling_are_listed() {
        let manifest = Manifest::parse(TEXT);
        let listed: Vec<_> = manifest
            .dependencies()
            .into_iter()
            .map(|found| (found.name, found.line, found.inherits))
            .collect();
        let expected = [
            ("brigade-sys", 9, true),
            ("serde", 10, true),
            ("stray", 11, false),
            ("loom", 14, true),
            ("own", 16, true),
        ];
        assert_eq!(
            listed,
            expected.map(|(name, line, inherits)| (name.to_owned(), line, inherits))
        );
        assert!(manifest.all_dependencies().iter().any(|found| found.name == "proptest"));
    }

    #[test]
    fn an_invalid_manifest_has_no_entries() {
        assert_eq!(Manifest::parse("[package\nname = 1").package(), None);
    }
}
