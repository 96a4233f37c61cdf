//! Counts the resources of a process: descriptors, threads, children, shared memory, temporary
//! files.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::pause;
use crate::processes;

/// Compares the current resources of this process with those at the creation of the check.
///
/// Everything that this process does in between counts, so nothing else may run in it: use it in a
/// separate program with its own `TMPDIR`.
#[must_use = "call `assert_none`"]
#[derive(Debug)]
pub struct LeakCheck {
    before: Holdings,
    counts_threads: bool,
}

/// Time between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

impl LeakCheck {
    /// Records the current resources of the process.
    pub fn new() -> Self {
        Self { before: Holdings::now(), counts_threads: true }
    }

    /// Leaves threads out: other tests of the program may start, and wait for this one.
    pub fn without_threads(mut self) -> Self {
        self.counts_threads = false;
        self
    }

    /// Checks that the process holds no more than before, at the latest after `within`.
    ///
    /// # Panics
    /// Panics with a list if it holds more for longer than that.
    #[track_caller]
    pub fn assert_none(&self, within: Duration) {
        let begin = Instant::now();
        loop {
            let waited = begin.elapsed();
            let mut now = Holdings::now();
            if !self.counts_threads {
                now.threads.clear();
            }
            let leaked = now.beyond(&self.before);
            if leaked.is_empty() {
                return;
            }
            assert!(waited < within, "still held after {within:?}:\n{leaked}");
            pause(LOOK_AGAIN);
        }
    }
}

impl Default for LeakCheck {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Debug)]
struct Holdings {
    /// Number of each descriptor and the file it refers to.
    descriptors: BTreeMap<String, String>,
    /// Id and name of each thread.
    threads: BTreeMap<String, String>,
    children: BTreeSet<u32>,
    shared_memory: BTreeSet<OsString>,
    temporary: BTreeSet<OsString>,
}

impl Holdings {
    fn now() -> Self {
        let mut descriptors = BTreeMap::new();
        for name in names(Path::new("/proc/self/fd")) {
            // The descriptor used by this very look is closed by now and leads nowhere.
            if let Ok(target) = fs::read_link(Path::new("/proc/self/fd").join(&name)) {
                descriptors
                    .insert(name.to_string_lossy().into_owned(), target.display().to_string());
            }
        }
        let threads = names(Path::new("/proc/self/task"))
            .into_iter()
            .filter_map(|id| {
                let name =
                    fs::read_to_string(Path::new("/proc/self/task").join(&id).join("comm")).ok()?;
                Some((id.to_string_lossy().into_owned(), name.trim().to_owned()))
            })
            .collect();
        Self {
            descriptors,
            threads,
            children: processes::children().into_iter().collect(),
            shared_memory: names(Path::new("/dev/shm")),
            temporary: names(&std::env::temp_dir())
                .into_iter()
                .filter(|name| is_ours(name))
                .collect(),
        }
    }

    /// Returns a line for each kind of resource that increased; empty if none did.
    fn beyond(&self, before: &Self) -> String {
        let mut report = String::new();
        more("descriptors", &self.descriptors, &before.descriptors, &mut report);
        more("threads", &self.threads, &before.threads, &mut report);
        added("children", &self.children, &before.children, &mut report);
        added("entries of /dev/shm", &self.shared_memory, &before.shared_memory, &mut report);
        added("temporary files", &self.temporary, &before.temporary, &mut report);
        report
    }
}

/// Compares numbers: a descriptor that was closed and another that was opened are not a leak.
fn more(
    kind: &str,
    now: &BTreeMap<String, String>,
    before: &BTreeMap<String, String>,
    report: &mut String,
) {
    if now.len() > before.len() {
        let new: Vec<_> = now.iter().filter(|(key, _)| !before.contains_key(*key)).collect();
        let _ = writeln!(report, "{kind}: {} instead of {}, new: {new:?}", now.len(), before.len());
    }
}

fn added<T: Ord + std::fmt::Debug>(
    kind: &str,
    now: &BTreeSet<T>,
    before: &BTreeSet<T>,
    report: &mut String,
) {
    let new: Vec<_> = now.difference(before).collect();
    if !new.is_empty() {
        let _ = writeln!(report, "{kind}: {new:?}");
    }
}

/// Returns `true` for files of the library. Other programs use the same folder.
fn is_ours(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with("brigade")
}

fn names(folder: &Path) -> BTreeSet<OsString> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // A single test, because the tests of one program run side by side and would count each other's
    // resources.
    #[test]
    fn each_kind_of_leak_is_found_and_named() {
        let held = |text: &[(&str, &str)]| {
            text.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let empty = || Holdings {
            descriptors: held(&[("0", "/dev/null")]),
            threads: held(&[("10", "main")]),
            children: BTreeSet::new(),
            shared_memory: BTreeSet::new(),
            temporary: BTreeSet::new(),
        };
        assert_eq!(empty().beyond(&empty()), "");
        let mut other = empty();
        other.descriptors = held(&[("3", "socket:[1]")]);
        assert_eq!(other.beyond(&empty()), "", "as many as before");
        other.descriptors = held(&[("0", "/dev/null"), ("3", "socket:[1]")]);
        other.threads = held(&[("10", "main"), ("11", "brigade-0")]);
        other.children.insert(12);
        other.shared_memory.insert("segment".into());
        other.temporary.insert("folder".into());
        let report = other.beyond(&empty());
        for word in ["socket:[1]", "brigade-0", "12", "segment", "folder"] {
            assert!(report.contains(word), "{word} is missing in {report}");
        }
    }

    #[test]
    fn an_open_file_of_this_process_is_seen() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().canonicalize().unwrap().display().to_string();
        assert!(Holdings::now().descriptors.values().any(|target| *target == path));
    }
}
