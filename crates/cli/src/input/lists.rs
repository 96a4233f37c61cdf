//! Argument lists: `::: A B`, `:::: FILE`, linked lists, and the combinations of several lists.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use brigade::runner::Duplicates;

use super::{Entry, Fetch, Input};
use crate::template::Template;

/// The words after `--`: a command and its argument lists.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Split {
    pub(crate) command: Vec<OsString>,
    pub(crate) lists: Vec<List>,
}

/// Argument lists as given on the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct List {
    contents: Contents,
    /// `true` for `:::+` and `::::+`: linked to the list before it.
    is_linked: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Contents {
    /// `::: A B`
    Words(Vec<OsString>),
    /// `:::: FILE FILE`: each file is a list of its own.
    Files(Vec<OsString>),
}

impl List {
    /// Returns an empty list if a word is a separator.
    fn begun_by(word: &[u8]) -> Option<Self> {
        let (contents, is_linked) = match word {
            b":::" => (Contents::Words(Vec::new()), false),
            b":::+" => (Contents::Words(Vec::new()), true),
            b"::::" => (Contents::Files(Vec::new()), false),
            b"::::+" => (Contents::Files(Vec::new()), true),
            _ => return None,
        };
        Some(Self { contents, is_linked })
    }
}

/// The arguments of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) words: Vec<OsString>,
    is_linked: bool,
}

/// Separates the command from its argument lists.
pub(crate) fn split(words: Vec<OsString>) -> Split {
    let mut command = Vec::new();
    let mut lists: Vec<List> = Vec::new();
    for word in words {
        match (List::begun_by(word.as_bytes()), lists.last_mut()) {
            (Some(list), _) => lists.push(list),
            (None, None) => command.push(word),
            (None, Some(list)) => match &mut list.contents {
                Contents::Words(words) | Contents::Files(words) => words.push(word),
            },
        }
    }
    Split { command, lists }
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
    #[error("`::::` must be followed by a file")]
    NoFile,
    #[error(
        "argument {second} of list {list} is the same as argument {first}: {value:.200}\nremove one of them, or use \
         --allow-duplicates"
    )]
    Duplicate { list: usize, first: u64, second: u64, value: String },
}

/// Reads the contents of the lists.
pub(crate) fn read(lists: Vec<List>, separator: u8) -> Result<Vec<Arguments>, ListError> {
    let mut all = Vec::new();
    for List { contents, is_linked } in lists {
        match contents {
            Contents::Words(words) => all.push(Arguments { words, is_linked }),
            Contents::Files(files) if files.is_empty() => return Err(ListError::NoFile),
            Contents::Files(files) => {
                for file in files {
                    let mut bytes = Vec::new();
                    if file == "-" {
                        io::stdin().lock().read_to_end(&mut bytes)
                    } else {
                        fs::File::open(&file).and_then(|mut file| file.read_to_end(&mut bytes))
                    }
                    .map_err(|source| {
                        let file = file.display().to_string();
                        ListError::Read { file, source }
                    })?;
                    all.push(Arguments { words: arguments(&bytes, separator), is_linked });
                }
            }
        }
    }
    Ok(all)
}

fn arguments(bytes: &[u8], separator: u8) -> Vec<OsString> {
    let bytes = bytes.strip_suffix(&[separator]).unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    bytes.split(|byte| *byte == separator).map(|word| OsString::from_vec(word.to_vec())).collect()
}

/// The arguments that belong together: one of each list of a dimension.
pub(crate) type Row = Vec<OsString>;

/// Returns the dimensions of the combinations: each list that is not linked begins one, and the
/// lists linked to it add arguments to its rows. The shortest list ends the rows.
pub(crate) fn linked(lists: Vec<Arguments>) -> Vec<Vec<Row>> {
    let mut dimensions: Vec<Vec<Row>> = Vec::new();
    for Arguments { words, is_linked } in lists {
        match dimensions.last_mut().filter(|_| is_linked) {
            Some(rows) => {
                rows.truncate(words.len());
                rows.iter_mut().zip(words).for_each(|(row, word)| row.push(word));
            }
            None => dimensions.push(words.into_iter().map(|word| vec![word]).collect()),
        }
    }
    dimensions
}

/// Links all dimensions to a single one. The longest decides the number of rows; the others start
/// again when they end.
pub(crate) fn cycled(dimensions: &[Vec<Row>]) -> Vec<Row> {
    if dimensions.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    let longest = dimensions.iter().map(Vec::len).max().unwrap_or(0);
    let row =
        |at: usize| dimensions.iter().flat_map(|rows| rows[at % rows.len()].clone()).collect();
    (0..longest).map(row).collect()
}

/// Checks that no dimension contains a row twice.
pub(crate) fn check(dimensions: &[Vec<Row>]) -> Result<(), ListError> {
    let mut list = 1;
    for rows in dimensions {
        let mut duplicates = Duplicates::default();
        for (second, row) in (1..).zip(rows) {
            if let Some(first) = duplicates.add(row, second) {
                let value = row.join(OsStr::new(" ")).display().to_string();
                return Err(ListError::Duplicate { list, first, second, value });
            }
        }
        list += rows.first().map_or(1, Vec::len);
    }
    Ok(())
}

/// The combinations of several dimensions; the last one varies fastest.
#[derive(Debug, Clone)]
pub(crate) struct Lists {
    template: Template,
    dimensions: Vec<Vec<Row>>,
    /// The next combination; `None` after the last one.
    positions: Option<Vec<usize>>,
    next_number: u64,
}

impl Lists {
    pub(crate) fn new(template: Template, dimensions: Vec<Vec<Row>>) -> Self {
        let positions =
            dimensions.iter().all(|rows| !rows.is_empty()).then(|| vec![0; dimensions.len()]);
        Self { template, dimensions, positions, next_number: 1 }
    }

    fn advance(&mut self) {
        let Some(positions) = &mut self.positions else { return };
        for (position, rows) in positions.iter_mut().zip(&self.dimensions).rev() {
            *position += 1;
            if *position < rows.len() {
                return;
            }
            *position = 0;
        }
        self.positions = None;
    }
}

impl Input for Lists {
    fn fetch(&mut self) -> Fetch {
        let Some(positions) = &self.positions else { return Fetch::End };
        let arguments: Vec<OsString> = self
            .dimensions
            .iter()
            .zip(positions)
            .flat_map(|(rows, position)| rows[*position].iter().cloned())
            .collect();
        let number = self.next_number;
        self.next_number += 1;
        self.advance();
        let job = self.template.job(number, &arguments);
        Fetch::Entry(Box::new(Entry { number, job, arguments }))
    }

    fn remaining(&self) -> Option<u64> {
        let total = self
            .dimensions
            .iter()
            .fold(1_u64, |total, rows| total.saturating_mul(rows.len() as u64));
        Some(total.saturating_sub(self.next_number - 1))
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input>>> {
        Ok(Some(Box::new(Self::new(self.template.clone(), self.dimensions.clone()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    fn rows(text: &str) -> Vec<Row> {
        words(text).into_iter().map(|word| vec![word]).collect()
    }

    fn commands(text: &str) -> Vec<String> {
        let split = split(words(text));
        let lists = read(split.lists, b'\n').expect("words only");
        let template = Template::parse(&split.command, false, lists.len()).expect("valid");
        let mut input = Lists::new(template, linked(lists));
        let mut commands = Vec::new();
        while let Fetch::Entry(entry) = input.fetch() {
            commands.push(format!("{} {}", entry.number, entry.job));
        }
        commands
    }

    #[test]
    fn the_last_of_several_lists_varies_fastest() {
        assert_eq!(commands("x {2}{1} ::: a b ::: 1 2"), ["1 x 1a", "2 x 2a", "3 x 1b", "4 x 2b"]);
        assert_eq!(commands("x ::: a b ::: 1"), ["1 x a 1", "2 x b 1"]);
    }

    #[test]
    fn the_shortest_of_linked_lists_ends_them() {
        assert_eq!(commands("x ::: a b c :::+ 1 2"), ["1 x a 1", "2 x b 2"]);
        assert_eq!(commands("x ::: a :::+ 1 2 :::+ A B"), ["1 x a 1 A"]);
        assert_eq!(
            commands("x ::: a b ::: 1 2 :::+ A B"),
            ["1 x a 1 A", "2 x a 2 B", "3 x b 1 A", "4 x b 2 B"]
        );
        assert_eq!(commands("x :::+ a b"), ["1 x a", "2 x b"]);
        assert!(commands("x ::: a :::+").is_empty());
    }

    #[test]
    fn the_longest_of_cycled_lists_ends_them() {
        let joined = |dimensions: &[Vec<Row>]| -> Vec<OsString> {
            cycled(dimensions).iter().map(|row| row.join(OsStr::new(" "))).collect()
        };
        let lists = [rows("a b"), rows("1 2 3"), rows("X")];
        assert_eq!(joined(&lists), ["a 1 X", "b 2 X", "a 3 X"]);
        assert!(joined(&[rows("a b"), rows("")]).is_empty());
        assert!(joined(&[]).is_empty());
    }

    #[test]
    fn an_empty_list_has_no_combinations() {
        assert!(commands("x ::: a :::").is_empty());
    }

    #[test]
    fn the_number_of_jobs_is_known() {
        let template = Template::parse(&words("x"), false, 2).expect("valid");
        let mut input = Lists::new(template, vec![rows("a b c"), rows("1 2")]);
        assert_eq!(input.remaining(), Some(6));
        input.fetch();
        assert_eq!(input.remaining(), Some(5));
    }

    #[test]
    fn a_duplicate_argument_is_an_error_that_names_both_positions() {
        let error = check(&[rows("a b"), rows("c d c")]).expect_err("twice");
        assert!(error.to_string().starts_with("argument 3 of list 2 is the same as argument 1: c"));
    }

    #[test]
    fn linked_arguments_are_duplicates_only_together() {
        let dimensions = |text: &str| linked(read(split(words(text)).lists, b'\n').expect("words"));
        assert!(check(&dimensions("x ::: a a :::+ 1 2")).is_ok());
        let error = check(&dimensions("x ::: p :::+ q ::: a a :::+ 1 1")).expect_err("twice");
        assert!(
            error.to_string().starts_with("argument 2 of list 3 is the same as argument 1: a 1")
        );
    }

    #[test]
    fn a_file_of_arguments_has_one_per_line() {
        assert_eq!(arguments(b"a b\n\nc\n", b'\n'), ["a b", "", "c"]);
        assert_eq!(arguments(b"a\nb\0c", 0), ["a\nb", "c"]);
        assert!(arguments(b"", b'\n').is_empty());
    }
}
