//! The command of a job, and how a shell reads it.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The command of a job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Command {
    /// A program and its arguments, passed on unchanged: no shell, no quoting.
    Argv(Vec<OsString>),
    /// A command line for a shell: `/bin/sh`, unless [`in_shell`](super::Job::in_shell) sets
    /// another one.
    Shell(OsString),
}

impl Command {
    /// Returns a line that a shell reads as the same command, with bytes that are not UTF-8
    /// unchanged.
    pub fn to_line(&self) -> OsString {
        match self {
            Self::Shell(line) => line.clone(),
            Self::Argv(words) => {
                let words: Vec<_> = words.iter().map(|word| quote(word)).collect();
                words.join(OsStr::new(" "))
            }
        }
    }
}

/// Writes a line that a shell reads as the same command, if it is UTF-8.
impl fmt::Display for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.to_line().to_string_lossy())
    }
}

/// Quotes a word for a shell, if necessary.
pub fn quote(word: &OsStr) -> Cow<'_, OsStr> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./:,@%+=^".contains(byte);
    let bytes = word.as_bytes();
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return word.into();
    }
    // Within single quotes a shell takes every byte literally except the quote.
    let parts: Vec<&[u8]> = bytes.split(|byte| *byte == b'\'').collect();
    let quoted = [b"'", parts.join(&br"'\''"[..]).as_slice(), b"'"].concat();
    OsString::from_vec(quoted).into()
}
