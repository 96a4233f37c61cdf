//! The executables of a build, and the results that tests print.

use std::path::PathBuf;

use super::Counts;

/// A test, or a program that tests start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Executable {
    pub(super) path: PathBuf,
    /// The folder of its package, in which cargo runs tests.
    pub(super) package: PathBuf,
    pub(super) is_test: bool,
}

impl Executable {
    /// Returns its name without the hash.
    pub(super) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !self.is_test {
            return name;
        }
        name.rsplit_once('-').map_or(name.clone(), |(name, _)| name.to_owned())
    }
}

/// Finds the executables in what cargo prints with `--message-format json`.
pub(super) fn built(messages: &str) -> Vec<Executable> {
    let built = messages.lines().filter(|line| line.contains("\"compiler-artifact\""));
    let executable = |line: &str| {
        let manifest = PathBuf::from(text(line, "manifest_path")?);
        Some(Executable {
            path: PathBuf::from(text(line, "executable")?),
            package: manifest.parent()?.to_owned(),
            is_test: line.split_once("\"profile\":")?.1.contains("\"test\":true}"),
        })
    };
    built.filter_map(executable).collect()
}

/// Returns the text of a field. Paths of builds have no character that JSON escapes.
fn text<'a>(line: &'a str, field: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("\"{field}\":\""))?;
    rest.split_once('"').map(|(text, _)| text)
}

/// Returns the patterns of tests of an executable that are left out. In the table, the name of a
/// test follows that of its executable.
pub(super) fn left_out(
    table: &[(&'static str, &'static str)],
    name: &str,
) -> impl Iterator<Item = &'static str> {
    table.iter().filter_map(move |(pattern, _)| pattern.strip_prefix(name)?.strip_prefix(": "))
}

/// Adds the results in the output of a test executable. If it did not end with its own summary,
/// the executable itself counts as failed.
pub(super) fn count(counts: &mut Counts, name: &str, output: &str, has_succeeded: bool) {
    let results = output.lines().filter_map(|line| line.strip_prefix("test ")?.split_once(" ... "));
    let mut has_failed = false;
    for (test, result) in results {
        if result.ends_with("ok") {
            counts.passed += 1;
        } else if result.ends_with("FAILED") {
            counts.failed.push(format!("{name}: {test}"));
            has_failed = true;
        }
    }
    if !has_succeeded && !has_failed {
        counts.failed.push(format!("{name} ended before its summary"));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{built, count};
    use crate::cross::Counts;

    const LINE: &str = r#"{"reason":"compiler-artifact","package_id":"x","manifest_path":"/w/crates/sys/Cargo.toml","target":{"kind":["lib"],"test":true},"profile":{"opt_level":"0","test":true},"executable":"/t/deps/brigade_sys-0a1b","fresh":true}"#;

    #[test]
    fn tests_and_programs_are_told_apart() {
        let program = LINE
            .replace("\"test\":true},\"exec", "\"test\":false},\"exec")
            .replace("brigade_sys-0a1b", "host");
        let library = LINE.replace("\"/t/deps/brigade_sys-0a1b\"", "null");
        let found = built(&format!("{LINE}\n{program}\n{library}\nother\n"));
        let names: Vec<_> = found.iter().map(|it| (it.name(), it.is_test)).collect();
        assert_eq!(names, [("brigade_sys".to_owned(), true), ("host".to_owned(), false)]);
        assert_eq!(found[0].package, Path::new("/w/crates/sys"));
    }

    #[test]
    fn an_executable_without_a_summary_has_failed() {
        let mut counts = Counts::default();
        count(
            &mut counts,
            "a",
            "test b ... ok\ntest c ... FAILED\ntest d - should panic ... ok\n",
            false,
        );
        assert_eq!((counts.passed, &counts.failed), (2, &vec!["a: c".to_owned()]));
        count(&mut counts, "e", "test f ... ok\n", false);
        assert_eq!(counts.failed[1], "e ended before its summary");
    }
}
