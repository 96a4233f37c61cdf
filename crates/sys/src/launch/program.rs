//! Finds a program on the search path.

use std::ffi::{CString, NulError, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The possible paths of a program, in the order of the search path.
///
/// Preparing them once for many starts of the same program saves building the paths again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    candidates: Vec<CString>,
}

/// Tells one state of a file from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

/// The search path if there is no `PATH`, as in `execvp`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

impl Program {
    /// Returns the possible paths of a program. A name with a slash is a path; another is searched
    /// for in `path`, the value of `PATH`.
    ///
    /// # Errors
    /// If the name or a folder of the path contains a zero byte.
    pub fn find(name: &OsStr, path: Option<&OsStr>) -> Result<Self, NulError> {
        if name.as_bytes().contains(&b'/') {
            return Ok(Self { candidates: vec![CString::new(name.as_bytes())?] });
        }
        let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
        let candidates = path
            .as_bytes()
            .split(|byte| *byte == b':')
            .map(|folder| {
                // An empty entry means the current folder, by an old custom.
                let folder = if folder.is_empty() { b".".as_slice() } else { folder };
                let file: OsString = Path::new(OsStr::from_bytes(folder)).join(name).into();
                CString::new(file.into_vec())
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { candidates })
    }

    /// Returns the first of the files that exists.
    pub fn file_id(&self) -> Option<FileId> {
        let mut paths = self.candidates.iter().map(|it| OsStr::from_bytes(it.to_bytes()));
        let found = paths.find_map(|path| std::fs::metadata(path).ok())?;
        let changed = (found.ctime(), found.ctime_nsec());
        Some(FileId { device: found.dev(), inode: found.ino(), changed })
    }

    pub(super) fn candidates(&self) -> &[CString] {
        &self.candidates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, path: Option<&str>) -> Vec<String> {
        let program = Program::find(name.as_ref(), path.map(str::as_ref)).expect("no zero byte");
        program.candidates.into_iter().map(|path| path.into_string().expect("UTF-8")).collect()
    }

    #[test]
    fn a_name_is_looked_for_in_each_folder_of_the_path() {
        assert_eq!(found("cc", Some("/a:/b")), ["/a/cc", "/b/cc"]);
        assert_eq!(found("cc", Some("")), ["./cc"]);
        assert_eq!(found("cc", None), ["/bin/cc", "/usr/bin/cc"]);
    }

    #[test]
    fn a_path_is_used_unchanged() {
        assert_eq!(found("./cc", Some("/a:/b")), ["./cc"]);
    }
}
