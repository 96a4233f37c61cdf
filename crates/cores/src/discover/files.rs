//! Where the files come from, and what is wrong with them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::recording::Recording;
use crate::cpu_set::CpuSet;
use crate::topology::Warning;

/// The largest file in question is the list of mounts; a mask of 8,192 cpus has 2,304 characters.
const LARGEST_FILE: u64 = 4 << 20;

/// A broken machine can be wrong about each of thousands of cpus; beyond this only the number of warnings grows.
const WARNINGS: usize = 50;

/// The files below a root, and the warnings so far.
pub(super) struct Files<'a> {
    source: Source<'a>,
    warnings: Vec<Warning>,
    more_warnings: usize,
}

enum Source<'a> {
    Folder(PathBuf),
    Recording(&'a Recording),
}

impl<'a> Files<'a> {
    pub(super) fn folder(root: &Path) -> Self {
        Self::new(Source::Folder(root.to_owned()))
    }

    pub(super) fn recording(recording: &'a Recording) -> Self {
        Self::new(Source::Recording(recording))
    }

    fn new(source: Source<'a>) -> Self {
        Self { source, warnings: Vec::new(), more_warnings: 0 }
    }

    pub(super) fn warn(&mut self, subject: &str, problem: impl std::fmt::Display) {
        if self.warnings.len() < WARNINGS {
            self.warnings.push(Warning::new(subject, problem));
        } else {
            self.more_warnings += 1;
        }
    }

    pub(super) fn take_warnings(&mut self) -> Vec<Warning> {
        let mut warnings = std::mem::take(&mut self.warnings);
        let more = std::mem::take(&mut self.more_warnings);
        if more > 0 {
            warnings.push(Warning::new("warnings", format!("{more} more of them")));
        }
        warnings
    }

    /// The content, without zero bytes and white space around it. Nothing if there is no such file; nothing and a warning if it
    /// cannot be read.
    pub(super) fn text(&mut self, path: &str) -> Option<String> {
        let text = match &self.source {
            Source::Recording(recording) => recording.file(path).map(str::to_owned),
            Source::Folder(root) => match read(&root.join(path)) {
                Ok(text) => Some(text),
                Err(error) => {
                    if !matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                    ) {
                        self.warn(path, format!("cannot be read ({error}); ignored"));
                    }
                    None
                }
            },
        }?;
        let trimmed =
            text.trim_matches(|character: char| character == '\0' || character.is_whitespace());
        Some(trimmed.to_owned())
    }

    /// A whole number; nothing and a warning for anything else.
    pub(super) fn number(&mut self, path: &str) -> Option<i64> {
        let text = self.text(path)?;
        let number = text.parse().ok();
        if number.is_none() {
            self.warn(
                path,
                format!(
                    "`{}` is no number; ignored",
                    text.escape_debug().take(40).collect::<String>()
                ),
            );
        }
        number
    }

    /// A number that stands for something: the kernel writes -1 where it does not know.
    pub(super) fn id(&mut self, path: &str) -> Option<u32> {
        self.number(path).and_then(|id| u32::try_from(id).ok())
    }

    /// Cpus (or nodes) in the list format.
    pub(super) fn list(&mut self, path: &str) -> Option<CpuSet> {
        let text = self.text(path)?;
        text.parse().map_err(|error| self.warn(path, format!("{error}; ignored"))).ok()
    }

    /// Cpus from a mask, or else from the list of the same cpus beside it.
    pub(super) fn cpus(&mut self, mask: &str, list: &str) -> Option<CpuSet> {
        let from_mask = self.text(mask).and_then(|text| {
            CpuSet::from_mask(&text)
                .map_err(|error| self.warn(mask, format!("{error}; the list is taken instead")))
                .ok()
        });
        from_mask.or_else(|| self.list(list))
    }

    /// Whether there is such a folder.
    pub(super) fn has_folder(&self, path: &str) -> bool {
        match &self.source {
            Source::Recording(recording) => recording.names(path).next().is_some(),
            Source::Folder(root) => root.join(path).is_dir(),
        }
    }

    /// The names of the entries of a folder; none without such a folder.
    pub(super) fn names(&mut self, folder: &str) -> BTreeSet<String> {
        match &self.source {
            Source::Recording(recording) => recording.names(folder).map(str::to_owned).collect(),
            Source::Folder(root) => match fs::read_dir(root.join(folder)) {
                Ok(entries) => {
                    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
                }
                Err(error) => {
                    if error.kind() != io::ErrorKind::NotFound {
                        self.warn(folder, format!("cannot be listed ({error}); ignored"));
                    }
                    BTreeSet::new()
                }
            },
        }
    }

    /// The numbers of the entries of a folder that are called `prefix` and a number.
    pub(super) fn numbered(&mut self, folder: &str, prefix: &str) -> CpuSet {
        let number = |name: &str| {
            let digits = name.strip_prefix(prefix)?;
            // Not "+1".
            let digits = digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(digits)?;
            digits.parse().ok().filter(|number| *number < CpuSet::PARSE_LIMIT)
        };
        self.names(folder).iter().filter_map(|name| number(name)).collect()
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST_FILE).read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| error.as_bytes().iter().map(|byte| char::from(*byte)).collect()))
}
