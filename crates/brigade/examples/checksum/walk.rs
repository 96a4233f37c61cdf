//! The files below some folders, one at a time, in an order that is the same each time.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::PathBuf;

use crate::digest::ReadFailure;

/// What the walk comes across.
pub(crate) enum Found {
    /// A regular file.
    File(PathBuf),
    /// A folder, or a path that was asked for, that cannot be looked at.
    Unreadable(PathBuf, ReadFailure),
    /// A symbolic link, socket, pipe or device.
    Special,
}

/// Walks depth first, names in the order of their bytes. It holds the open branch, never the whole tree.
pub(crate) struct Walk {
    /// What is still to be visited; the next one is last.
    stack: Vec<Visit>,
    roots: VecDeque<PathBuf>,
}

enum Visit {
    Path(PathBuf, fs::FileType),
    Unreadable(PathBuf, io::Error),
}

impl Walk {
    pub(crate) fn new(roots: Vec<PathBuf>) -> Self {
        Self { stack: Vec::new(), roots: roots.into() }
    }

    fn enter(&mut self, folder: PathBuf) {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => return self.stack.push(Visit::Unreadable(folder, error)),
        };
        let mut visits = Vec::new();
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))) {
                Ok((path, kind)) => visits.push(Visit::Path(path, kind)),
                Err(error) => visits.push(Visit::Unreadable(folder.clone(), error)),
            }
        }
        visits.sort_by(|one, other| other.path().as_os_str().cmp(one.path().as_os_str()));
        self.stack.append(&mut visits);
    }
}

impl Visit {
    fn path(&self) -> &PathBuf {
        match self {
            Self::Path(path, _) | Self::Unreadable(path, _) => path,
        }
    }

    /// A path that was asked for; a symbolic link is followed here and nowhere else.
    fn root(path: PathBuf) -> Self {
        match fs::metadata(&path) {
            Ok(metadata) => Self::Path(path, metadata.file_type()),
            Err(error) => Self::Unreadable(path, error),
        }
    }
}

impl Iterator for Walk {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            let visit = match self.stack.pop() {
                Some(visit) => visit,
                None => Visit::root(self.roots.pop_front()?),
            };
            match visit {
                Visit::Path(path, kind) if kind.is_file() => return Some(Found::File(path)),
                Visit::Path(path, kind) if kind.is_dir() => self.enter(path),
                Visit::Path(..) => return Some(Found::Special),
                Visit::Unreadable(path, error) => {
                    return Some(Found::Unreadable(path, ReadFailure::from(&error)));
                }
            }
        }
    }
}
