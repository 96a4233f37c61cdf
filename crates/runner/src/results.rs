//! A directory of results, laid out as by GNU parallel's `--results`: `DIR/1/first
//! argument/2/second argument/{seq,stdout,stderr}`.

mod files;
mod table;
mod text;

pub use files::ResultFiles;
pub use table::{ResultTable, TableFormat};

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use brigade_base::stable_hash;

/// A directory of results.
#[derive(Debug, Clone)]
pub struct Results {
    folder: PathBuf,
    names: Vec<OsString>,
}

/// The longest file name that most file systems allow.
const MAX_NAME: usize = 255;

impl Results {
    /// Stores results in this directory, which need not exist.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), names: Vec::new() }
    }

    /// Names the directories of arguments, from the first, instead of numbering them.
    #[must_use]
    pub fn names(mut self, names: Vec<OsString>) -> Self {
        self.names = names;
        self
    }

    /// Returns the files of the job with these arguments.
    pub fn files(&self, arguments: &[OsString]) -> ResultFiles {
        let mut folder = self.folder.clone();
        for (index, argument) in arguments.iter().enumerate() {
            match self.names.get(index) {
                Some(name) => folder.push(file_name(name)),
                None => folder.push((index + 1).to_string()),
            }
            folder.push(file_name(argument));
        }
        ResultFiles::in_folder(&folder)
    }
}

/// Returns a directory name for an argument, replacing tabs, zero bytes, backslashes and slashes as
/// GNU parallel does.
///
/// A name that is too long is cut, as there. But its end becomes a hash, so that two long arguments
/// with the same beginning do not share a directory. Empty, `.` and `..` are not usable as names
/// and get a prefix.
fn file_name(argument: &OsStr) -> OsString {
    let mut name = Vec::with_capacity(argument.len());
    for byte in argument.as_bytes() {
        match byte {
            b'\\' => name.extend_from_slice(br"\\"),
            b'\t' => name.extend_from_slice(br"\t"),
            0 => name.extend_from_slice(br"\0"),
            b'/' => name.extend_from_slice(br"\_"),
            byte => name.push(*byte),
        }
    }
    if matches!(name.as_slice(), b"" | b"." | b"..") {
        name.splice(0..0, *br"\e");
    }
    if name.len() > MAX_NAME {
        let hash = stable_hash(argument.as_bytes().iter().copied());
        let end = format!("~{hash:016x}");
        name.truncate(MAX_NAME - end.len());
        name.extend_from_slice(end.as_bytes());
    }
    OsString::from_vec(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_those_of_gnu_parallel() {
        let name = |text: &str| file_name(text.as_ref()).into_string().expect("UTF-8");
        assert_eq!(name("a b"), "a b");
        assert_eq!(name("c/d"), r"c\_d");
        assert_eq!(name(r"y\z"), r"y\\z");
        assert_eq!(name("a\tb"), r"a\tb");
    }

    #[test]
    fn a_long_name_is_the_same_in_every_release() {
        let name = file_name("a".repeat(1_000).as_ref()).into_string().expect("UTF-8");
        assert!(name.ends_with("a~3c835852fbac676d"), "{name}");
    }

    proptest! {
        #[test]
        fn different_arguments_have_different_names(
            first in prop::collection::vec(any::<u8>(), 0..400),
            second in prop::collection::vec(any::<u8>(), 0..400),
        ) {
            let names = [&first, &second].map(|bytes| file_name(OsStr::from_bytes(bytes)));
            prop_assert_eq!(names[0] == names[1], first == second);
            for name in &names {
                let bytes = name.as_bytes();
                prop_assert!(bytes.len() <= MAX_NAME && !bytes.is_empty());
                prop_assert!(!bytes.contains(&b'/') && !bytes.contains(&0) && bytes != b"..");
            }
        }
    }
}
