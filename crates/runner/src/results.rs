//! A directory of results, laid out as by GNU parallel's `--results`: `DIR/1/first
//! argument/2/second argument/{seq,stdout,stderr}`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::outcome::Outcome;
use crate::output::Output;

/// A directory of results.
#[derive(Debug, Clone)]
pub struct Results {
    folder: PathBuf,
}

/// The longest file name that most file systems allow.
const LONGEST_NAME: usize = 255;

impl Results {
    /// Stores results in this directory, which need not exist.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Creates the directory of a job and the file with its number. Returns the destination of its
    /// output.
    pub fn prepare(&self, number: u64, arguments: &[OsString]) -> io::Result<Output> {
        let folder = self.folder_of(arguments);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("seq"), number.to_string())?;
        Ok(Output::Files { stdout: folder.join("stdout"), stderr: folder.join("stderr") })
    }

    /// Writes the outputs of a job that did not write to the files itself.
    pub fn write(&self, outcome: &Outcome, arguments: &[OsString]) -> io::Result<()> {
        self.prepare(outcome.number, arguments)?;
        let folder = self.folder_of(arguments);
        outcome.stdout.copy_to(&mut fs::File::create(folder.join("stdout"))?)?;
        outcome.stderr.copy_to(&mut fs::File::create(folder.join("stderr"))?)?;
        Ok(())
    }

    fn folder_of(&self, arguments: &[OsString]) -> PathBuf {
        let mut folder = self.folder.clone();
        for (index, argument) in (1..).zip(arguments) {
            folder.push(format!("{index}"));
            folder.push(file_name(argument));
        }
        folder
    }

    /// Returns the directory.
    pub fn path(&self) -> &Path {
        &self.folder
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
    if name.len() > LONGEST_NAME {
        let mut hasher = DefaultHasher::new();
        argument.hash(&mut hasher);
        let end = format!("~{:016x}", hasher.finish());
        name.truncate(LONGEST_NAME - end.len());
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
                prop_assert!(bytes.len() <= LONGEST_NAME && !bytes.is_empty());
                prop_assert!(!bytes.contains(&b'/') && !bytes.contains(&0) && bytes != b"..");
            }
        }
    }
}
