//! The options of argument lists: how they are read, combined and shared out among jobs.

use std::ffi::OsString;
use std::num::NonZeroUsize;

use clap::{Args, ValueHint};
use miette::{Report, miette};
use regex::bytes::Regex;

use super::Run;
use super::values::parse_number;
use crate::input::{Columns, Framing, RowRules, RowSharing, Separators, Trim};
use crate::template::Joining;

/// The options of argument lists.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Argument lists")]
#[expect(clippy::struct_excessive_bools, reason = "each option is a field of the same name")]
pub(crate) struct ListOptions {
    /// Read arguments from the lines of FILE; can be given several times
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "command")]
    pub(crate) arg_file: Vec<OsString>,

    /// Arguments and lines end with a NUL byte instead of a newline
    #[arg(short = '0', long, overrides_with = "delimiter")]
    pub(crate) null: bool,

    /// Arguments and lines end with TEXT instead of a newline; \t, \0 and \x2c are known
    #[arg(short, long, value_name = "TEXT", value_parser = parse_delimiter, overrides_with = "null")]
    delimiter: Option<Delimiter>,

    /// A list ends before the first argument that is TEXT
    #[arg(short = 'E', value_name = "TEXT", requires = "command")]
    end: Option<String>,

    /// Leave out blank lines
    #[arg(short = 'r', long, requires = "command")]
    no_run_if_empty: bool,

    /// Ignore the first line of the first list
    #[arg(long, requires = "command")]
    pub(crate) skip_first_line: bool,

    /// Split lines into columns at each match of REGEX: {1} is the first column
    #[arg(short = 'C', long, value_name = "REGEX", value_parser = parse_pattern, requires = "command")]
    colsep: Option<Pattern>,

    /// Split lines into columns as CSV; the character of --colsep separates them
    #[arg(long, requires = "command")]
    csv: bool,

    /// With `:`, take names from the first line of each list: {name} is the column with this name.
    /// With --pipe, begin each block with the header of the input: N lines, a regular expression,
    /// or : for one line
    #[arg(long, value_name = ":", requires = "command")]
    pub(crate) header: Option<String>,

    /// Remove white space from arguments: l at the left, r at the right, lr at both ends, n at
    /// neither end [default: lr with --colsep, else n]
    #[arg(long, value_name = "ENDS", value_parser = parse_trim, requires = "command")]
    trim: Option<Trim>,

    /// Use STR as the replacement string for the argument instead of {}
    #[arg(short = 'I', long = "replace", value_name = "STR", requires = "command")]
    pub(crate) replace: Option<OsString>,

    /// Word that begins a list of words [default: :::]
    #[arg(long, value_name = "WORD", requires = "command")]
    arg_sep: Option<OsString>,

    /// Word that begins a list of files [default: ::::]
    #[arg(long, value_name = "WORD", requires = "command")]
    arg_file_sep: Option<OsString>,

    /// Link all lists instead of combining them: the first arguments of all, the second ones, and
    /// so on. Shorter lists start again
    #[arg(long, alias = "xapply", requires = "command")]
    pub(crate) link: bool,

    /// Give each job up to N arguments in the place of {}
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_number::<usize>, requires = "command")]
    max_args: Option<usize>,

    /// Give each job as many arguments as fit, and repeat a word with {} for each. The last ones
    /// are spread over all slots
    #[arg(short = 'X', requires = "command")]
    fills_repeated: bool,

    /// Like -X, but put all arguments in the place of {} instead of repeating its word
    #[arg(short = 'm', requires = "command")]
    fills: bool,

    /// Like -m, but do not spread the last arguments
    #[arg(long, requires = "command")]
    xargs: bool,

    /// Limit commands to fewer than N bytes [default with -X, -m and --xargs: 131072]
    #[arg(short = 's', long, value_name = "N", value_parser = parse_number::<usize>, requires = "command")]
    max_chars: Option<usize>,

    /// Know more replacement strings: {..} {...} {/..} {/...} {+/} {+.} {+..} {+...} {##} {0#}
    #[arg(long, requires = "command")]
    pub(crate) plus: bool,
}

/// The longest line that the kernel accepts as an argument of a shell, with the byte at its end.
const MAX_COMMAND: usize = 128 * 1024;

/// The bytes that end a line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Delimiter(Vec<u8>);

/// A regular expression and its text.
#[derive(Debug, Clone)]
struct Pattern {
    text: String,
    regex: Regex,
}

impl ListOptions {
    /// Returns the form of the lines of lists and job files.
    pub(crate) fn framing(&self, skips_blank: bool) -> Framing {
        let delimiter = match &self.delimiter {
            _ if self.null => vec![0],
            Some(Delimiter(bytes)) => bytes.clone(),
            None => vec![b'\n'],
        };
        Framing { delimiter, skips_blank }
    }

    /// Returns `true` if lines are split into columns.
    pub(crate) fn has_columns(&self) -> bool {
        self.colsep.is_some() || self.csv
    }

    /// Returns `true` if the first rows of the lists are names.
    pub(crate) fn has_header(&self) -> Result<bool, Report> {
        match self.header.as_deref() {
            None => Ok(false),
            Some(":") => Ok(true),
            Some(other) => Err(miette!(
                help = "use --skip-first-line to ignore a line",
                "`--header {other}` is not available: argument lists have only `--header :`"
            )),
        }
    }

    /// Returns `true` if jobs get as many arguments as fit.
    fn fills_command(&self) -> bool {
        self.fills_repeated || self.fills || self.xargs
    }

    /// Returns the words that begin lists.
    pub(crate) fn separators(&self) -> Separators {
        let defaults = Separators::default();
        Separators {
            words: self.arg_sep.clone().unwrap_or(defaults.words),
            files: self.arg_file_sep.clone().unwrap_or(defaults.files),
        }
    }
}

impl Run {
    /// Returns `true` if the command is a line for a shell.
    pub(crate) fn is_shell_line(&self) -> bool {
        self.shell.is_some() && !self.quote
    }

    /// Returns the rules by which lines become rows.
    pub(crate) fn row_rules(&self) -> Result<RowRules, Report> {
        let lists = &self.lists;
        let columns = match &lists.colsep {
            Some(pattern) if lists.csv => match pattern.text.as_bytes() {
                [delimiter] => Some(Columns::Csv(*delimiter)),
                br"\t" => Some(Columns::Csv(b'\t')),
                _ => {
                    return Err(miette!(
                        "with --csv, --colsep must be a single character, such as `;` or `\\t`"
                    ));
                }
            },
            Some(pattern) => Some(Columns::Separated(pattern.regex.clone())),
            None if lists.csv => Some(Columns::Csv(b',')),
            None => None,
        };
        let both = Trim { left: true, right: true };
        let default = if lists.colsep.is_some() && !lists.csv { both } else { Trim::default() };
        Ok(RowRules {
            columns,
            trim: lists.trim.unwrap_or(default),
            end: lists.end.as_ref().map(|end| end.clone().into_bytes()),
            skips_blank: lists.no_run_if_empty,
            continues: self.pipe.lines.is_some(),
        })
    }

    /// Returns the number of rows of each job, if this number of jobs runs at once.
    pub(crate) fn sharing(&self, slots: NonZeroUsize) -> RowSharing {
        let fills = self.lists.fills_command();
        let (most, limit) = if fills { (usize::MAX, MAX_COMMAND) } else { (1, usize::MAX) };
        RowSharing {
            most: self.arguments_per_job().unwrap_or(most),
            limit: self.lists.max_chars.unwrap_or(limit),
            spread: (self.lists.fills_repeated || self.lists.fills).then_some(slots),
        }
    }

    /// Returns the form of a word with the arguments of several rows.
    pub(crate) fn joining(&self) -> Joining {
        let ListOptions { max_args, fills_repeated, .. } = self.lists;
        let is_several = self.arguments_per_job().is_some();
        let fills = self.lists.fills_command();
        match (is_several, fills) {
            _ if fills_repeated => Joining::Repeated,
            (true, false) if max_args.is_none() => Joining::Repeated,
            (false, false) => Joining::Spaces,
            _ => Joining::Words,
        }
    }

    fn arguments_per_job(&self) -> Option<usize> {
        let lines = self.pipe.lines.map(NonZeroUsize::get);
        self.lists.max_args.or(self.pipe.records).or(lines)
    }
}

/// Parses text with the escapes of C.
fn parse_delimiter(text: &str) -> Result<Delimiter, String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let [kind, after @ ..] = after else {
            bytes.push(*first);
            continue;
        };
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        rest = after;
        let (radix, most, start) = match kind {
            b'x' => (16, 2, after),
            b'0'..=b'7' => (8, 3, &text.as_bytes()[text.len() - after.len() - 1..]),
            _ => {
                bytes.push(match kind {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'a' => 0x07,
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    b'v' => 0x0b,
                    other => *other,
                });
                continue;
            }
        };
        let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
        let count = start.iter().take(most).take_while(is_digit).count();
        let (digits, after) = start.split_at(count);
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        let byte = u8::from_str_radix(digits, radix);
        bytes.push(byte.map_err(|_| format!("`\\{}` is not a byte", char::from(*kind)))?);
        rest = after;
    }
    if bytes.is_empty() {
        return Err("a delimiter has at least one character; for NUL bytes use --null".to_owned());
    }
    Ok(Delimiter(bytes))
}

fn parse_pattern(text: &str) -> Result<Pattern, String> {
    let regex = Regex::new(text).map_err(|error| match error {
        regex::Error::Syntax(message) => {
            let reason = message.lines().last().unwrap_or_default();
            format!("not a regular expression: {}", reason.trim_start_matches("error: "))
        }
        other => other.to_string(),
    })?;
    Ok(Pattern { text: text.to_owned(), regex })
}

fn parse_trim(text: &str) -> Result<Trim, String> {
    match text {
        "n" => Ok(Trim::default()),
        "l" => Ok(Trim { left: true, right: false }),
        "r" => Ok(Trim { left: false, right: true }),
        "lr" | "rl" => Ok(Trim { left: true, right: true }),
        _ => Err("expected l, r, lr or n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delimiter_may_have_escapes() {
        let parse = |text: &str| parse_delimiter(text).map(|Delimiter(bytes)| bytes);
        for (text, expected) in [
            (":", &b":"[..]),
            ("::", b"::"),
            (r"\t", b"\t"),
            (r"\n,\\", b"\n,\\"),
            (r"\0", b"\0"),
            (r"\054", b","),
            (r"\x2cx", b",x"),
            (r"a\", b"a\\"),
            ("ä", "ä".as_bytes()),
        ] {
            assert_eq!(parse(text), Ok(expected.to_vec()), "{text}");
        }
        for wrong in ["", r"\777", r"\xg"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_wrong_pattern_is_refused_with_its_reason() {
        let error = parse_pattern("[").expect_err("open");
        assert_eq!(error, "not a regular expression: unclosed character class");
    }
}
