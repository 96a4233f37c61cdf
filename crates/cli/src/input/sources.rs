//! The argument lists of a command line: `::: A B`, `:::: FILE`, and linked lists.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::{Framing, OpenQuote, Row, RowReader};
use crate::patient::Patient;

/// The words after `--`: a command and its argument lists.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Split {
    pub(crate) command: Vec<OsString>,
    pub(crate) lists: Vec<List>,
}

/// An argument list of the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) contents: ListOrigin,
    /// `true` if it is linked to the list before it.
    pub(crate) is_linked: bool,
}

/// The origin of a list's arguments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ListOrigin {
    Words(Vec<OsString>),
    /// A file; `-` for standard input.
    File(OsString),
}

/// The words that begin lists; followed by a `+`, they begin linked ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Separators {
    /// `:::`
    pub(crate) words: OsString,
    /// `::::`
    pub(crate) files: OsString,
}

/// An argument list that is not possible, could not be read, or contains a duplicate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListError {
    #[error("cannot read the arguments in {file}")]
    Read {
        file: String,
        #[source]
        source: io::Error,
    },
    #[error("`{separator}` must be followed by a file")]
    NoFile { separator: String },
    #[error(
        "argument {second} of list {list} is the same as argument {first}: {value:.200}\nremove one of them, or use \
         --allow-duplicates"
    )]
    Duplicate { list: usize, first: u64, second: u64, value: String },
    #[error(transparent)]
    OpenQuote(#[from] OpenQuote),
}

impl Default for Separators {
    fn default() -> Self {
        Self { words: ":::".into(), files: "::::".into() }
    }
}

impl Separators {
    /// Returns `true` for the start of a list of files, and `false` for one of words; then `true`
    /// if the list is linked.
    fn parse(&self, word: &OsStr) -> Option<(bool, bool)> {
        let linked =
            |separator: &OsString| match word.as_bytes().strip_prefix(separator.as_bytes())? {
                b"" => Some(false),
                b"+" => Some(true),
                _ => None,
            };
        let words = linked(&self.words).map(|is_linked| (false, is_linked));
        words.or_else(|| linked(&self.files).map(|is_linked| (true, is_linked)))
    }
}

impl List {
    /// Returns the list of a file's lines.
    pub(crate) fn of_file(file: OsString) -> Self {
        Self { contents: ListOrigin::File(file), is_linked: false }
    }

    /// Reads all rows.
    pub(crate) fn read(
        self,
        framing: &Framing,
        mut reader: RowReader,
    ) -> Result<Vec<Row>, ListError> {
        let mut rows = Vec::new();
        match self.contents {
            ListOrigin::Words(words) => {
                for word in words {
                    rows.extend(reader.push(word.into_vec())?);
                }
            }
            ListOrigin::File(file) => {
                let take = |line| -> Result<_, OpenQuote> {
                    rows.extend(reader.push(line)?);
                    Ok(!reader.is_over)
                };
                let read = Patient::open(&file).and_then(|opened| framing.each(opened, take));
                let cannot = |source| ListError::Read { file: file.display().to_string(), source };
                read.map_err(cannot)??;
            }
        }
        rows.extend(reader.finish()?);
        Ok(rows)
    }
}

/// Separates the command from its argument lists.
pub(crate) fn split(words: Vec<OsString>, separators: &Separators) -> Result<Split, ListError> {
    let mut words = words.into_iter().peekable();
    let mut command = Vec::new();
    while let Some(word) = words.next_if(|word| separators.parse(word).is_none()) {
        command.push(word);
    }
    let mut lists = Vec::new();
    while let Some(separator) = words.next() {
        let (has_files, is_linked) = separators.parse(&separator).unwrap_or_default();
        let mut list = Vec::new();
        while let Some(word) = words.next_if(|word| separators.parse(word).is_none()) {
            list.push(word);
        }
        if !has_files {
            lists.push(List { contents: ListOrigin::Words(list), is_linked });
        } else if list.is_empty() {
            return Err(ListError::NoFile { separator: separator.display().to_string() });
        } else {
            let files = list.into_iter().map(ListOrigin::File);
            lists.extend(files.map(|contents| List { contents, is_linked }));
        }
    }
    Ok(Split { command, lists })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_separator_begins_a_list_and_each_file_is_one() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let separators = Separators::default();
        let Split { command, lists } =
            split(words("x y ::: a :::+ b c :::: f g ::::+ h"), &separators).expect("valid");
        assert_eq!(command, ["x", "y"]);
        let list = |contents, is_linked| List { contents, is_linked };
        let file = |name: &str| ListOrigin::File(name.into());
        let expected = [
            list(ListOrigin::Words(words("a")), false),
            list(ListOrigin::Words(words("b c")), true),
            list(file("f"), false),
            list(file("g"), false),
            list(file("h"), true),
        ];
        assert_eq!(lists, expected);
        let error = split(words("x :::: ::: a"), &separators).expect_err("no file");
        assert_eq!(error.to_string(), "`::::` must be followed by a file");
    }
}
