//! Iterates over the files below some folders, in the same order each time.

use std::ffi::OsString;
use std::fs::{self, DirEntry, FileType};
use std::io;
use std::path::{Path, PathBuf};
use std::vec;

use crate::failure::ReadFailure;

/// An entry that the walk has found.
pub(crate) enum Found {
    /// A regular file.
    File(PathBuf),
    /// A folder or an argument that could not be read.
    Unreadable(PathBuf, ReadFailure),
    /// A symbolic link. It is not followed, so that no file is found twice and no cycle is entered.
    Link,
    /// A socket, pipe or device.
    Special,
}

/// A depth-first walk, with names in the order of their bytes.
///
/// It holds the names in the folders of the current branch, never the whole tree, and no
/// descriptors.
pub(crate) struct Walk {
    roots: vec::IntoIter<PathBuf>,
    /// The current branch; the deepest folder is last.
    open: Vec<Folder>,
}

struct Folder {
    path: PathBuf,
    entries: vec::IntoIter<(OsString, io::Result<FileType>)>,
}

impl Walk {
    pub(crate) fn new(roots: Vec<PathBuf>) -> Self {
        Self { roots: roots.into_iter(), open: Vec::new() }
    }

    /// Returns the next path and its type.
    fn step(&mut self) -> Option<(PathBuf, io::Result<FileType>)> {
        while let Some(folder) = self.open.last_mut() {
            if let Some((name, kind)) = folder.entries.next() {
                return Some((folder.path.join(name), kind));
            }
            self.open.pop();
        }
        let root = self.roots.next()?;
        let kind = argument_type(&root);
        Some((root, kind))
    }
}

impl Iterator for Walk {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            let (path, kind) = self.step()?;
            let error = match kind {
                Ok(kind) if kind.is_file() => return Some(Found::File(path)),
                Ok(kind) if kind.is_dir() => match Folder::read(&path) {
                    Ok(folder) => {
                        self.open.push(folder);
                        continue;
                    }
                    Err(error) => error,
                },
                Ok(kind) if kind.is_symlink() => return Some(Found::Link),
                Ok(_) => return Some(Found::Special),
                Err(error) => error,
            };
            return Some(Found::Unreadable(path, ReadFailure::from(&error)));
        }
    }
}

impl Folder {
    /// Reads all names, because they have to be sorted. A folder that fails before its end counts
    /// as unreadable.
    fn read(path: &Path) -> io::Result<Self> {
        let entry = |entry: DirEntry| (entry.file_name(), entry.file_type());
        let mut entries =
            fs::read_dir(path)?.map(|found| found.map(entry)).collect::<io::Result<Vec<_>>>()?;
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(Self { path: path.to_owned(), entries: entries.into_iter() })
    }
}

/// Returns the type of a path that was given as an argument. Only here, a symbolic link is
/// followed, and an entry that the walk would skip is an error, because the user asked for it.
fn argument_type(path: &Path) -> io::Result<FileType> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_file() || kind.is_dir() {
        return Ok(kind);
    }
    Err(io::Error::other("neither a regular file nor a folder"))
}
