//! The files below some folders, one at a time, in an order that is the same each time.

use std::ffi::OsString;
use std::fs::{self, DirEntry, FileType};
use std::io;
use std::path::{Path, PathBuf};
use std::vec;

use crate::failure::ReadFailure;

/// What the walk comes across.
pub(crate) enum Found {
    /// A regular file.
    File(PathBuf),
    /// A folder, or a path that was asked for, that cannot be looked at.
    Unreadable(PathBuf, ReadFailure),
    /// A symbolic link; not followed, so that no file comes twice and no circle is walked.
    Link,
    /// A socket, pipe or device.
    Special,
}

/// Walks depth first, names in the order of their bytes.
///
/// It holds the names in the folders of the open branch, never the whole tree, and no descriptors.
pub(crate) struct Walk {
    roots: vec::IntoIter<PathBuf>,
    /// The open branch; the deepest folder is last.
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

    /// The next path, and what it is.
    fn step(&mut self) -> Option<(PathBuf, io::Result<FileType>)> {
        while let Some(folder) = self.open.last_mut() {
            if let Some((name, kind)) = folder.entries.next() {
                return Some((folder.path.join(name), kind));
            }
            self.open.pop();
        }
        let root = self.roots.next()?;
        let kind = asked_for(&root);
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
    /// Reads all names, because they have to be sorted. A folder that cannot be read to its end counts as unreadable.
    fn read(path: &Path) -> io::Result<Self> {
        let entry = |entry: DirEntry| (entry.file_name(), entry.file_type());
        let mut entries =
            fs::read_dir(path)?.map(|found| found.map(entry)).collect::<io::Result<Vec<_>>>()?;
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(Self { path: path.to_owned(), entries: entries.into_iter() })
    }
}

/// What a path given as an argument is. A symbolic link is followed here and nowhere else, and what is passed over in a
/// folder is a failure here: somebody has asked for it.
fn asked_for(path: &Path) -> io::Result<FileType> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_file() || kind.is_dir() {
        return Ok(kind);
    }
    Err(io::Error::other("neither a regular file nor a folder"))
}
