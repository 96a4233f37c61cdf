//! Inserts the `--` that people leave out before the command: `brigade run echo {} ::: a b`.
//!
//! The first word that is neither an option nor an option's value is a job file or the beginning of
//! a command. It begins a command if what follows can only belong to one, or if it is no file but a
//! program. Then all that follows belongs to the command, as in GNU parallel.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::{Arg, Command};

use crate::parallel::spelling::{has_letter, names, takes_value};

/// Returns the words of a command line with a `--` before the command of `run`.
pub(crate) fn inserted(
    words: Vec<OsString>,
    run: &Command,
    is_program: impl Fn(&OsStr) -> bool,
) -> Vec<OsString> {
    /// The program's name and the subcommand.
    const BEFORE_OPTIONS: usize = 2;
    let mut words = words;
    let mut at = BEFORE_OPTIONS;
    while let Some(word) = words.get(at).map(|word| word.as_bytes()) {
        if !word.starts_with(b"-") || word == b"-" {
            break;
        }
        match values_of(word, run) {
            Some(values) => at += 1 + values,
            // The separator, or an option that does not exist.
            None => return words,
        }
    }
    let Some((first, rest)) = words.get(at..).and_then(<[OsString]>::split_first) else {
        return words;
    };
    if belong_to_a_command(rest, run) || (first != "-" && is_program(first)) {
        words.insert(at, "--".into());
    }
    words
}

/// Returns `true` if the words after the first one can only belong to a command.
fn belong_to_a_command(rest: &[OsString], run: &Command) -> bool {
    let mut rest = rest.iter();
    let mut has_word = false;
    while let Some(word) = rest.next() {
        let word = word.as_bytes();
        if word == b"--" {
            return false;
        }
        if is_separator(word) || has_replacement(word) {
            return true;
        }
        if word.starts_with(b"-") {
            let values = values_of(word, run).unwrap_or(0);
            rest.by_ref().take(values).for_each(drop);
        } else {
            has_word = true;
        }
    }
    has_word
}

fn is_separator(word: &[u8]) -> bool {
    matches!(word, b":::" | b"::::" | b":::+" | b"::::+")
}

fn has_replacement(word: &[u8]) -> bool {
    let mut starts = (0..word.len()).filter(|at| word[*at] == b'{');
    starts.any(|at| word[at + 1..].contains(&b'}'))
}

/// Returns the number of words after an option that are its values; `None` if there is no such
/// option.
pub(crate) fn values_of(word: &[u8], run: &Command) -> Option<usize> {
    // The value of an option that requires `=` is in the same word.
    let takes_word = |it: &Arg| takes_value(it) && !it.is_require_equals_set();
    if let Some(long) = word.strip_prefix(b"--") {
        let name = long.split(|byte| *byte == b'=').next()?;
        let is_it = |it: &&Arg| names(it).iter().any(|other| other.as_bytes() == name);
        if name == b"help" || name == b"version" {
            return Some(0);
        }
        let argument = run.get_arguments().find(is_it)?;
        return Some(usize::from(takes_word(argument) && !long.contains(&b'=')));
    }
    let mut letters = std::str::from_utf8(word.strip_prefix(b"-")?).ok()?.chars();
    while let Some(letter) = letters.next() {
        if matches!(letter, 'h' | 'V') {
            continue;
        }
        if takes_word(run.get_arguments().find(|it| has_letter(it, letter))?) {
            return Some(usize::from(letters.as_str().is_empty()));
        }
    }
    Some(0)
}

/// Returns `true` if a word is no file, but a program on the search path.
pub(crate) fn is_program(word: &OsStr) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let is_plain = !word.as_bytes().contains(&b'/') && !std::path::Path::new(word).exists();
    let is_executable = |folder: std::path::PathBuf| {
        std::fs::metadata(folder.join(word))
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    is_plain && std::env::split_paths(&path).any(is_executable)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn inserted_in(line: &str) -> String {
        let command = crate::arguments::Arguments::command();
        let run = command.find_subcommand("run").expect("defined");
        let words = line.split(' ').map(OsString::from).collect();
        let words = inserted(words, run, |word| word == "gzip");
        words.join(OsStr::new(" ")).into_string().expect("UTF-8")
    }

    #[test]
    fn a_command_is_recognized_by_what_follows() {
        for (line, expected) in [
            ("b run echo {} ::: a b", "b run -- echo {} ::: a b"),
            ("b run -j4 -k --delay 1 echo ::: a", "b run -j4 -k --delay 1 -- echo ::: a"),
            ("b run -kj 4 --delay=1 x -n :::: f", "b run -kj 4 --delay=1 -- x -n :::: f"),
            ("b run --shell echo {}", "b run --shell -- echo {}"),
            ("b run --shell=bash gzip", "b run --shell=bash -- gzip"),
            ("b run wc -l {}", "b run -- wc -l {}"),
            ("b run grep word", "b run -- grep word"),
            ("b run gzip", "b run -- gzip"),
            ("b run gzip -9", "b run -- gzip -9"),
            ("b run echo :::+ a", "b run -- echo :::+ a"),
        ] {
            assert_eq!(inserted_in(line), expected, "{line}");
        }
    }

    #[test]
    fn a_job_file_stays_one() {
        for line in [
            "b run list.txt",
            "b run list.txt --joblog log -k",
            "b run --joblog log -",
            "b run - -j 4",
            "b run -- echo {} ::: a",
            "b run -k -- echo -- ::: a",
            "b run --tmux wc ::: a",
            "b run list.txt --tmux",
            "b run",
        ] {
            assert_eq!(inserted_in(line), line);
        }
    }
}
