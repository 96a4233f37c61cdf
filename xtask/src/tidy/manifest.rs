//! As much TOML as the manifests of this workspace use: sections, keys, values over several lines,
//! comments.

/// The keys of one Cargo.toml in order.
pub(super) struct Manifest {
    pub(super) entries: Vec<Entry>,
}

/// `key = value` with its section.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) section: String,
    pub(super) key: String,
    /// As written, without comments; several lines are joined by spaces.
    pub(super) value: String,
    /// Counted from 1.
    pub(super) line: usize,
}

/// A dependency that reaches the users of a package: normal, for its build, or for some platforms.
pub(super) struct Dependency<'a> {
    pub(super) name: &'a str,
    pub(super) line: usize,
    /// Whether version and features come from `[workspace.dependencies]`.
    pub(super) inherits: bool,
}

impl Manifest {
    pub(super) fn parse(text: &str) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        let mut section = String::new();
        let mut open_brackets = 0;
        for (line, raw) in (1..).zip(text.lines()) {
            let content = without_comment(raw).trim();
            if open_brackets > 0 {
                if let Some(entry) = entries.last_mut() {
                    entry.value = format!("{} {content}", entry.value);
                }
                open_brackets += bracket_balance(content);
            } else if content.starts_with('[') {
                content.trim_matches(['[', ']']).clone_into(&mut section);
            } else if let Some((key, value)) = content.split_once('=') {
                let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
                open_brackets = bracket_balance(&value);
                entries.push(Entry { section: section.clone(), key, value, line });
            }
        }
        Self { entries }
    }

    pub(super) fn get(&self, section: &str, key: &str) -> Option<&str> {
        let entry =
            self.entries.iter().find(|entry| entry.section == section && entry.key == key)?;
        Some(entry.value.trim_matches('"'))
    }

    /// The name of the package, if the manifest has one.
    pub(super) fn package(&self) -> Option<&str> {
        self.get("package", "name")
    }

    /// Dependencies that a user of the package gets; those of tests and examples are left out.
    pub(super) fn dependencies(&self) -> Vec<Dependency<'_>> {
        self.dependencies_in(|kind| matches!(kind, "dependencies" | "build-dependencies"))
    }

    /// Dependencies of every kind.
    pub(super) fn all_dependencies(&self) -> Vec<Dependency<'_>> {
        self.dependencies_in(|kind| {
            matches!(kind, "dependencies" | "build-dependencies" | "dev-dependencies")
        })
    }

    fn dependencies_in(&self, wanted: fn(&str) -> bool) -> Vec<Dependency<'_>> {
        let mut found: Vec<Dependency<'_>> = Vec::new();
        for entry in &self.entries {
            let (kind, own_section) = dependency_section(&entry.section);
            if !wanted(kind) {
                continue;
            }
            let (name, key) = match own_section {
                Some(name) => (name, entry.key.as_str()),
                None => entry.key.split_once('.').unwrap_or((&entry.key, "")),
            };
            let inherits = (key == "workspace" && entry.value == "true")
                || entry.value.replace(' ', "").contains("workspace=true");
            // A section of its own has several keys; one of them says `workspace`.
            match found.last_mut().filter(|last| own_section.is_some() && last.name == name) {
                Some(last) => last.inherits |= inherits,
                None => found.push(Dependency { name, line: entry.line, inherits }),
            }
        }
        found
    }
}

/// Splits `target.'cfg(loom)'.dependencies.loom` into the kind and, if the section is of one
/// dependency, its name.
fn dependency_section(section: &str) -> (&str, Option<&str>) {
    for kind in ["dev-dependencies", "build-dependencies", "dependencies"] {
        let Some(start) = section.find(kind) else {
            continue;
        };
        let in_target = section.starts_with("target.") && section[..start].ends_with('.');
        let after = &section[start + kind.len()..];
        if (start == 0 || in_target) && (after.is_empty() || after.starts_with('.')) {
            return (kind, after.strip_prefix('.'));
        }
    }
    ("", None)
}

fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    for (index, character) in line.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '#' if !quoted => return &line[..index],
            _ => {}
        }
    }
    line
}

fn bracket_balance(value: &str) -> i32 {
    let mut quoted = false;
    value.chars().fold(0, |balance, character| match character {
        '"' => {
            quoted = !quoted;
            balance
        }
        '[' | '{' if !quoted => balance + 1,
        ']' | '}' if !quoted => balance - 1,
        _ => balance,
    })
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
description = "has a # in it"

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
"#;

    #[test]
    fn keys_are_found_in_their_section() {
        let manifest = Manifest::parse(TEXT);
        assert_eq!(manifest.package(), Some("brigade-wire"));
        assert_eq!(manifest.get("package", "description"), Some("has a # in it"));
        assert_eq!(manifest.get("package", "keywords"), Some("[ \"a\", ]"));
        assert_eq!(manifest.get("dependencies", "name"), None);
    }

    #[test]
    fn dependencies_of_every_spelling_are_listed() {
        let manifest = Manifest::parse(TEXT);
        let listed: Vec<_> = manifest
            .dependencies()
            .iter()
            .map(|found| (found.name, found.line, found.inherits))
            .collect();
        assert_eq!(
            listed,
            [
                ("brigade-sys", 10, true),
                ("serde", 11, true),
                ("stray", 12, false),
                ("loom", 15, true),
                ("own", 18, true)
            ]
        );
        assert!(manifest.all_dependencies().iter().any(|found| found.name == "proptest"));
    }
}
