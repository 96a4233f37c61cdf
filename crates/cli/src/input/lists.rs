//! Argument lists: `::: A B`, `:::: FILE`, and the combinations of several lists.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use brigade::runner::Duplicates;

use super::{Entry, Fetch, Input};
use crate::gnu;
use crate::template::Template;

/// The words after `--`: a command and its argument lists.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Split {
    pub(crate) command: Vec<OsString>,
    pub(crate) lists: Vec<List>,
}

/// An argument list as given on the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// `::: A B`
    Words(Vec<OsString>),
    /// `:::: FILE FILE`: each file is a list of its own.
    Files(Vec<OsString>),
}

/// Separates the command from its argument lists.
pub(crate) fn split(words: Vec<OsString>) -> Result<Split, ListError> {
    let mut command = Vec::new();
    let mut lists: Vec<List> = Vec::new();
    for word in words {
        if let Some(advice) = gnu::separator(word.as_bytes()) {
            return Err(ListError::Unavailable { word: word.display().to_string(), advice });
        }
        match word.as_bytes() {
            b":::" => lists.push(List::Words(Vec::new())),
            b"::::" => lists.push(List::Files(Vec::new())),
            _ => match lists.last_mut() {
                None => command.push(word),
                Some(List::Words(words) | List::Files(words)) => words.push(word),
            },
        }
    }
    Ok(Split { command, lists })
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
    #[error("GNU parallel's `{word}` is not available in brigade: {advice}")]
    Unavailable { word: String, advice: &'static str },
    #[error("`::::` must be followed by a file")]
    NoFile,
    #[error(
        "argument {second} of list {list} is the same as argument {first}: {value:.200}\nremove one of them, or use \
         --allow-duplicates"
    )]
    Duplicate { list: usize, first: u64, second: u64, value: String },
}

/// Reads the contents of the lists.
pub(crate) fn read(lists: Vec<List>, separator: u8) -> Result<Vec<Vec<OsString>>, ListError> {
    let mut all = Vec::new();
    for list in lists {
        match list {
            List::Words(words) => all.push(words),
            List::Files(files) if files.is_empty() => return Err(ListError::NoFile),
            List::Files(files) => {
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
                    all.push(arguments(&bytes, separator));
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

/// Checks that no list contains an argument twice.
pub(crate) fn check(lists: &[Vec<OsString>]) -> Result<(), ListError> {
    for (list, words) in (1..).zip(lists) {
        let mut duplicates = Duplicates::default();
        for (second, word) in (1..).zip(words) {
            if let Some(first) = duplicates.add(word, second) {
                let value = word.display().to_string();
                return Err(ListError::Duplicate { list, first, second, value });
            }
        }
    }
    Ok(())
}

/// The combinations of several lists; the last list varies fastest.
#[derive(Debug, Clone)]
pub(crate) struct Lists {
    template: Template,
    arguments: Vec<Vec<OsString>>,
    /// The next combination; `None` after the last one.
    positions: Option<Vec<usize>>,
    next_number: u64,
}

impl Lists {
    pub(crate) fn new(template: Template, arguments: Vec<Vec<OsString>>) -> Self {
        let positions =
            arguments.iter().all(|list| !list.is_empty()).then(|| vec![0; arguments.len()]);
        Self { template, arguments, positions, next_number: 1 }
    }

    fn advance(&mut self) {
        let Some(positions) = &mut self.positions else { return };
        for (position, list) in positions.iter_mut().zip(&self.arguments).rev() {
            *position += 1;
            if *position < list.len() {
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
            .arguments
            .iter()
            .zip(positions)
            .map(|(list, position)| list[*position].clone())
            .collect();
        let number = self.next_number;
        self.next_number += 1;
        self.advance();
        let job = self.template.job(number, &arguments);
        Fetch::Entry(Box::new(Entry { number, job, arguments }))
    }

    fn remaining(&self) -> Option<u64> {
        let total = self.arguments.iter().map(|list| list.len() as u64).product::<u64>();
        Some(total.saturating_sub(self.next_number - 1))
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input>>> {
        Ok(Some(Box::new(Self::new(self.template.clone(), self.arguments.clone()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    fn commands(text: &str) -> Vec<String> {
        let split = split(words(text)).expect("valid");
        let lists = read(split.lists, b'\n').expect("words only");
        let template = Template::parse(&split.command, false, lists.len()).expect("valid");
        let mut input = Lists::new(template, lists);
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
    fn an_empty_list_has_no_combinations() {
        assert!(commands("x ::: a :::").is_empty());
    }

    #[test]
    fn the_number_of_jobs_is_known() {
        let template = Template::parse(&words("x"), false, 2).expect("valid");
        let mut input = Lists::new(template, vec![words("a b c"), words("1 2")]);
        assert_eq!(input.remaining(), Some(6));
        input.fetch();
        assert_eq!(input.remaining(), Some(5));
    }

    #[test]
    fn a_duplicate_argument_is_an_error_that_names_both_positions() {
        let error = check(&[words("a b"), words("c d c")]).expect_err("twice");
        assert!(error.to_string().starts_with("argument 3 of list 2 is the same as argument 1: c"));
    }

    #[test]
    fn a_file_of_arguments_has_one_per_line() {
        assert_eq!(arguments(b"a b\n\nc\n", b'\n'), ["a b", "", "c"]);
        assert_eq!(arguments(b"a\nb\0c", 0), ["a\nb", "c"]);
        assert!(arguments(b"", b'\n').is_empty());
    }
}
