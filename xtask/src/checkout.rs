//! The files of this checkout, read once for all checks of tidy.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, available_parallelism};

use crate::tokens;

/// All files that git tracks or would add, ordered by path.
pub(crate) struct Checkout {
    pub(crate) files: Vec<File>,
}

/// One text file.
pub(crate) struct File {
    /// Relative to the root, with `/` between folders.
    pub(crate) path: String,
    pub(crate) text: String,
    /// For Rust: the text with comments and literals blanked, with the same lines. Empty for other
    /// files.
    pub(crate) code: String,
}

impl Checkout {
    pub(crate) fn read() -> Result<Self, String> {
        let root = root();
        let mut files = on_all_processors(tracked(&root)?, |path| {
            // Skip tracked files whose deletion is not staged, and links to folders.
            let bytes = std::fs::read(root.join(&path)).ok();
            bytes.map(|bytes| File::new(path, String::from_utf8_lossy(&bytes).into_owned()))
        });
        files.sort_by(|one, two| one.path.cmp(&two.path));
        Ok(Self { files })
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file = |&(path, text): &(&str, &str)| File::new(path.to_owned(), text.to_owned());
        Self { files: files.iter().map(file).collect() }
    }

    pub(crate) fn rust_files(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    /// Returns the manifests of all packages of the workspace. The root manifest has no package,
    /// and a manifest with its own workspace (a peer of the benches) does not belong to this one.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = &File> {
        let apart = |file: &&File| file.text.lines().any(|line| line.trim() == "[workspace]");
        let manifests = self.files.iter().filter(|file| file.path.ends_with("/Cargo.toml"));
        manifests.filter(move |file| !apart(file))
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }
}

impl File {
    fn new(path: String, text: String) -> Self {
        let mut file = Self { path, text, code: String::new() };
        if file.is_rust() {
            file.code = tokens::code_only(&file.text);
        }
        file
    }

    pub(crate) fn is_rust(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|extension| extension == "rs")
    }

    /// Returns `true` if the whole file is test code: in a folder `tests`, or a file `tests.rs`.
    pub(crate) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }

    /// Returns the lines of code with their numbers, counted from 1.
    pub(crate) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.code.lines())
    }

    /// Returns the number of the first line of the test module, which is last in a file. The
    /// declaration of one in a file of its own may come first.
    pub(crate) fn first_test_line(&self) -> usize {
        let lines: Vec<&str> = self.code.lines().collect();
        let opens_module =
            |pair: &[&str]| pair[0].starts_with("#[cfg(") && pair[0].contains("test");
        lines
            .windows(2)
            .position(|pair| {
                opens_module(pair) && pair[1].starts_with("mod ") && pair[1].contains('{')
            })
            .map_or(usize::MAX, |index| index + 1)
    }
}

/// Calls a function for each item, on as many threads as there are processors. Returns the results
/// in any order.
pub(crate) fn on_all_processors<T: Send, R: IntoIterator<Item: Send>>(
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    function: impl Fn(T) -> R + Sync,
) -> Vec<R::Item> {
    let items = Mutex::new(items.into_iter());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || std::iter::from_fn(next).flat_map(&function).collect::<Vec<_>>();
    let threads = available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .flat_map(|it| it.join().unwrap_or_else(|it| resume_unwind(it)))
            .collect()
    })
}

/// Returns the folder of the workspace.
pub(crate) fn root() -> PathBuf {
    // `cargo run` sets the variable to this package's folder, even if the checkout was moved.
    std::env::var_os("CARGO_MANIFEST_DIR")
        .and_then(|package| Path::new(&package).parent().map(Path::to_owned))
        .unwrap_or_else(|| PathBuf::from("."))
}

/// Returns cargo's target folder, relative to the root unless the environment sets another one.
pub(crate) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

fn tracked(root: &Path) -> Result<Vec<String>, String> {
    let output = Command::new("git")
        // In CI the checkout may belong to another user; git refuses to read it by default.
        .args([
            "-c",
            "safe.directory=*",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .map_err(|error| format!("tidy cannot start git to list the files: {error}"))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("git cannot list the files: {reason}"));
    }
    let paths = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(paths.split_terminator('\0').map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::Checkout;

    #[test]
    fn reads_this_file() {
        let checkout = Checkout::read().unwrap();
        let file = checkout.file("xtask/src/checkout.rs").unwrap();
        assert!(file.text.contains("reads_this_file"));
        assert!(checkout.files.iter().all(|file| !file.path.starts_with("target/")));
    }

    #[test]
    fn a_package_with_its_own_workspace_is_skipped() {
        let checkout = Checkout::of(&[
            ("Cargo.toml", "[workspace]\n"),
            ("crates/a/Cargo.toml", "[package]\n[lints]\nworkspace = true\n"),
            ("benches/peers/b/Cargo.toml", "[workspace]\n\n[package]\n"),
        ]);
        let paths: Vec<&str> = checkout.manifests().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["crates/a/Cargo.toml"]);
    }

    #[test]
    fn test_code_is_recognized_by_path() {
        let checkout = Checkout::of(&[
            ("crates/a/src/b/tests.rs", ""),
            ("crates/a/tests/b.rs", ""),
            ("crates/a/src/b.rs", "fn b() {}\n\n#[cfg(test)]\nmod tests {}\n"),
        ]);
        let [sibling, folder, code] = &checkout.files[..] else { unreachable!() };
        assert!(sibling.is_test() && folder.is_test() && !code.is_test());
        assert_eq!(code.first_test_line(), 3);
    }
}
