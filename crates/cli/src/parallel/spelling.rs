//! Reads options as GNU parallel does, and spells them as clap expects them.
//!
//! GNU parallel ignores hyphens within long names, accepts their beginnings, and takes the next
//! word for a value even if it looks like an option. Options end at the first other word.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use clap::{Arg, ArgAction, Command};

/// Names of GNU parallel's that are neither ours nor the beginning of one.
const SYNONYMS: &[(&str, &str)] = &[
    ("dr", "dry-run"),
    ("haltonerror", "halt"),
    ("jl", "joblog"),
    ("latestline", "ll"),
    ("linebuffered", "line-buffer"),
    ("nn", "will-cite"),
    ("res", "results"),
    ("result", "results"),
    ("retry", "retry-failed"),
    ("round", "round-robin"),
    ("semaphorename", "id"),
    ("spreadstdin", "pipe"),
    ("tempdir", "tmpdir"),
];

/// The options of a command line, and the words after them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Read {
    /// Each in one word.
    pub(super) options: Vec<OsString>,
    pub(super) command: Vec<OsString>,
}

/// Knows the options.
#[derive(Debug)]
pub(super) struct Spelling<'a> {
    command: &'a Command,
}

impl<'a> Spelling<'a> {
    pub(super) fn new(command: &'a Command) -> Self {
        Self { command }
    }

    /// Reads words up to the first one that is not an option. An option that does not exist is left
    /// as it is, for clap to complain about.
    pub(super) fn read(&self, words: &[OsString]) -> Read {
        let mut read = Read::default();
        let mut words = words.iter();
        while let Some(word) = words.clone().next() {
            let bytes = word.as_bytes();
            if !bytes.starts_with(b"-") || bytes == b"-" {
                break;
            }
            words.next();
            if bytes == b"--" {
                break;
            }
            match bytes.strip_prefix(b"--") {
                Some(long) => read.options.push(self.long(long, &mut words)),
                None => self.read_letters(&bytes[1..], &mut words, &mut read.options),
            }
        }
        read.command = words.cloned().collect();
        read
    }

    /// Returns `true` if there is an option with this name, such as `-k` or `--jobs`.
    #[cfg(test)]
    pub(super) fn has(&self, option: &str) -> bool {
        match option.strip_prefix("--") {
            Some(name) => self.named(name).is_some(),
            None => option.chars().nth(1).is_some_and(|letter| self.lettered(letter).is_some()),
        }
    }

    fn long<'w>(&self, long: &[u8], words: &mut impl Iterator<Item = &'w OsString>) -> OsString {
        let (name, value) = match long.iter().position(|byte| *byte == b'=') {
            Some(at) => (&long[..at], Some(OsStr::from_bytes(&long[at + 1..]))),
            None => (long, None),
        };
        let Some(argument) = self.named(&String::from_utf8_lossy(name)) else {
            return OsString::from_vec([b"--", long].concat());
        };
        let value = value.or_else(|| {
            let next = needs_value(argument).then(|| words.next());
            next.flatten().map(OsString::as_os_str)
        });
        spelled(argument, value)
    }

    fn read_letters<'w>(
        &self,
        letters: &[u8],
        words: &mut impl Iterator<Item = &'w OsString>,
        options: &mut Vec<OsString>,
    ) {
        for (at, letter) in letters.iter().enumerate() {
            let rest = &letters[at + 1..];
            let Some(argument) = self.lettered(char::from(*letter)) else {
                return options.push(OsString::from_vec([b"-", &letters[at..]].concat()));
            };
            if !takes_value(argument) {
                options.push(spelled(argument, None));
            } else if !rest.is_empty() {
                return options.push(spelled(argument, Some(OsStr::from_bytes(rest))));
            } else {
                let value = needs_value(argument).then(|| words.next()).flatten();
                return options.push(spelled(argument, value.map(OsString::as_os_str)));
            }
        }
    }

    /// Returns the option with this name, without regard to hyphens, or the only one with this
    /// beginning.
    fn named(&self, name: &str) -> Option<&'a Arg> {
        let name = name.replace('-', "");
        let synonym = SYNONYMS.iter().find(|(theirs, _)| *theirs == name);
        let name = synonym.map_or(name, |(_, ours)| ours.replace('-', ""));
        let mut beginnings = BTreeSet::new();
        let mut found = None;
        for argument in self.command.get_arguments() {
            for long in names(argument) {
                let long = long.replace('-', "");
                if long == name {
                    return Some(argument);
                }
                if long.starts_with(&name) {
                    beginnings.insert(argument.get_id());
                    found = Some(argument);
                }
            }
        }
        found.filter(|_| beginnings.len() == 1)
    }

    fn lettered(&self, letter: char) -> Option<&'a Arg> {
        self.command.get_arguments().find(|argument| has_letter(argument, letter))
    }
}

/// Returns the long names of an option.
pub(crate) fn names(argument: &Arg) -> Vec<&str> {
    let aliases = argument.get_all_aliases().unwrap_or_default();
    argument.get_long().into_iter().chain(aliases).collect()
}

/// Returns `true` if a letter is a short name of an option.
pub(crate) fn has_letter(argument: &Arg, letter: char) -> bool {
    argument.get_short() == Some(letter)
        || argument.get_all_short_aliases().unwrap_or_default().contains(&letter)
}

/// Returns `true` if an option has a value, in its own word or in the next one.
pub(crate) fn takes_value(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Set | ArgAction::Append)
}

/// Returns `true` if the next word is the value of an option that has none in its own word.
fn needs_value(argument: &Arg) -> bool {
    takes_value(argument) && argument.get_num_args().is_none_or(|count| count.min_values() > 0)
}

/// Returns an option and its value in one word.
fn spelled(argument: &Arg, value: Option<&OsStr>) -> OsString {
    let mut word = match (argument.get_long(), argument.get_short()) {
        (Some(long), _) => OsString::from(format!("--{long}")),
        (None, Some(letter)) => OsString::from(format!("-{letter}")),
        (None, None) => OsString::new(),
    };
    if let Some(value) = value {
        word.push("=");
        word.push(value);
    }
    word
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn read(line: &str) -> (String, String) {
        let mut command = crate::arguments::Arguments::command();
        command.build();
        let parallel = command.find_subcommand("parallel").expect("defined");
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let Read { options, command } = Spelling::new(parallel).read(&words);
        let joined =
            |words: Vec<OsString>| words.join(OsStr::new(" ")).into_string().expect("UTF-8");
        (joined(options), joined(command))
    }

    #[test]
    fn options_are_spelled_as_ours() {
        for (line, options, command) in [
            ("-kj2 echo -k", "--keep-order --jobs=2", "echo -k"),
            ("-j -1 --keeporder x", "--jobs=-1 --keep-order", "x"),
            ("--halt -1 --jl log x", "--halt=-1 --joblog=log", "x"),
            ("--keep --dry ::: a", "--keep-order --dry-run", "::: a"),
            ("--joblog=l -- -x", "--joblog=l", "-x"),
            ("-k - x", "--keep-order", "- x"),
            ("--unknown -k x", "--unknown --keep-order", "x"),
            ("--re x", "--re", "x"),
        ] {
            assert_eq!(read(line), (options.to_owned(), command.to_owned()), "{line}");
        }
    }
}
