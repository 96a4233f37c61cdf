//! Reads the files of a machine and collects warnings about them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::recording::Recording;
use crate::cpu_set::CpuSet;
use crate::topology::Warning;

/// The largest relevant file is the list of mounts. A mask of 8,192 cpus has 2,304 characters.
const MAX_FILE_SIZE: u64 = 4 << 20;

/// Maximum number of warnings in full. A broken machine can be wrong about each of thousands of
/// cpus; further warnings are only counted.
const MAX_WARNINGS: usize = 50;

/// The files below a root, and the warnings about them.
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
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(Warning::new(subject, problem));
        } else {
            self.more_warnings += 1;
        }
    }

    pub(super) fn take_warnings(&mut self) -> Vec<Warning> {
        let mut warnings = std::mem::take(&mut self.warnings);
        let more = std::mem::take(&mut self.more_warnings);
        if more > 0 {
            warnings.push(Warning::new("warnings", format!("{more} more were dropped")));
        }
        warnings
    }

    /// Returns a file's content, without leading and trailing zero bytes and white space. Returns
    /// `None` if the file does not exist, and warns if it cannot be read.
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

    /// Reads an integer. Warns about anything else.
    pub(super) fn number(&mut self, path: &str) -> Option<i64> {
        let text = self.text(path)?;
        let number = text.parse().ok();
        if number.is_none() {
            self.warn(
                path,
                format!(
                    "`{}` is not a number; ignored",
                    text.escape_debug().take(40).collect::<String>()
                ),
            );
        }
        number
    }

    /// Reads an id; `None` for -1, which the kernel writes if it does not know the id.
    pub(super) fn id(&mut self, path: &str) -> Option<u32> {
        self.number(path).and_then(|id| u32::try_from(id).ok())
    }

    /// Reads cpus (or nodes) in the list format.
    pub(super) fn list(&mut self, path: &str) -> Option<CpuSet> {
        let text = self.text(path)?;
        text.parse().map_err(|error| self.warn(path, format!("{error}; ignored"))).ok()
    }

    /// Reads cpus from a mask, or from the list of the same cpus if there is no valid mask.
    pub(super) fn cpus(&mut self, mask: &str, list: &str) -> Option<CpuSet> {
        let from_mask = self.text(mask).and_then(|text| {
            CpuSet::from_mask(&text)
                .map_err(|error| self.warn(mask, format!("{error}; the list is used instead")))
                .ok()
        });
        from_mask.or_else(|| self.list(list))
    }

    /// Returns `true` if the folder exists.
    pub(super) fn has_folder(&self, path: &str) -> bool {
        match &self.source {
            Source::Recording(recording) => recording.names(path).next().is_some(),
            Source::Folder(root) => root.join(path).is_dir(),
        }
    }

    /// Returns the names in a folder; none if it does not exist.
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

    /// Returns the numbers of the entries in a folder that are named `prefix` and a number.
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
    File::open(path)?.take(MAX_FILE_SIZE).read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| error.as_bytes().iter().map(|byte| char::from(*byte)).collect()))
}
