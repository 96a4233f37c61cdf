//! Commands with replacement strings: `gcc -c {} -o {.}.o`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use brigade::runner::{Job, quote};

use crate::input::Row;

/// A command with replacement strings.
///
/// Without a shell each word stays one argument, whatever is inserted into it. With a shell the
/// words are joined by spaces and inserted arguments are quoted, as in GNU parallel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    words: Vec<Vec<Segment>>,
    is_shell: bool,
    /// `true` if arguments are not quoted for the shell: they are the commands.
    is_verbatim: bool,
    has_slot: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Text(Vec<u8>),
    Replacement(Replacement),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replacement {
    /// `{#}`
    Number,
    /// `{%}`
    Slot,
    /// `{}`, `{2}`, `{.}`, `{2.}` and so on: one list or all lists, and the part of the argument.
    Argument(Option<usize>, Part),
}

/// The part of an argument to insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// `{}`
    Whole,
    /// `{.}`: without its extension
    Stem,
    /// `{/}`: without its directory
    Name,
    /// `{//}`: its directory
    Folder,
    /// `{/.}`: without its directory and extension
    NameStem,
}

/// Stands for the slot until the job starts. No argument can contain it: it is not valid UTF-8
/// text.
const SLOT_MARKER: &[u8] = b"\x01\xffslot\xff\x01";

/// The spelling of replacement strings, and the arguments that they can refer to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grammar {
    /// `true` for a command that is a line for the shell.
    pub(crate) is_shell: bool,
    /// `true` if arguments are not quoted for the shell: they are the commands.
    pub(crate) is_verbatim: bool,
    /// Number of arguments of each job; `None` if lines are only split when they are read.
    pub(crate) arguments: Option<usize>,
    /// The names of arguments, from the first.
    pub(crate) names: Row,
    /// The replacement string for whole arguments, if it is not `{}`.
    pub(crate) whole: Option<OsString>,
}

/// A replacement string that has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateError {
    /// It refers to an argument that no job has.
    #[error("`{{{position}}}` refers to argument {position}, but each job has only {arguments}")]
    NoSuchArgument { position: usize, arguments: usize },
    /// It refers to an argument that a job does not have.
    #[error("job {number} has {arguments} arguments, but the command contains `{{{position}}}`")]
    MissingArgument { number: u64, position: usize, arguments: usize },
    /// It is one of GNU parallel's.
    #[error("GNU parallel's `{{{inner}}}` is not available in brigade: {advice}")]
    Unavailable { inner: String, advice: &'static str },
}

impl Template {
    /// Parses a command. If it has no replacement string, `{}` is appended, provided there are
    /// arguments.
    pub(crate) fn parse(words: &[OsString], grammar: &Grammar) -> Result<Self, TemplateError> {
        let mut words: Vec<Vec<Segment>> =
            words.iter().map(|word| grammar.segments(word.as_bytes())).collect::<Result<_, _>>()?;
        let replacements = || words.iter().flatten().filter_map(Segment::replacement);
        let has_replacements = replacements().next().is_some();
        let has_slot = replacements().any(|replacement| replacement == Replacement::Slot);
        for replacement in replacements() {
            if let Replacement::Argument(Some(position), _) = replacement
                && let Some(arguments) = grammar.arguments
                && !(1..=arguments).contains(&position)
            {
                return Err(TemplateError::NoSuchArgument { position, arguments });
            }
        }
        if !has_replacements && grammar.arguments != Some(0) {
            words.push(vec![Segment::Replacement(Replacement::Argument(None, Part::Whole))]);
        }
        let Grammar { is_shell, is_verbatim, .. } = *grammar;
        Ok(Self { words, is_shell, is_verbatim, has_slot })
    }

    /// Returns the job for these arguments.
    pub(crate) fn job(&self, number: u64, arguments: &[OsString]) -> Result<Job, TemplateError> {
        for replacement in self.words.iter().flatten().filter_map(Segment::replacement) {
            if let Replacement::Argument(Some(position), _) = replacement
                && !(1..=arguments.len()).contains(&position)
            {
                let arguments = arguments.len();
                return Err(TemplateError::MissingArgument { number, position, arguments });
            }
        }
        let words = self.words.iter().flat_map(|segments| self.words(segments, number, arguments));
        let job = if self.is_shell {
            let words: Vec<Vec<u8>> = words.collect();
            Job::shell(OsString::from_vec(words.join(&b' ')))
        } else {
            let mut words = words.map(OsString::from_vec);
            Job::new(words.next().unwrap_or_default()).args(words)
        };
        let job = job.number(number);
        Ok(if self.has_slot { job.slot_marker(OsStr::from_bytes(SLOT_MARKER)) } else { job })
    }

    /// Returns the words for a word of the command: one, or one for each argument if it consists of
    /// nothing but a place for all of them.
    fn words(&self, segments: &[Segment], number: u64, arguments: &[OsString]) -> Vec<Vec<u8>> {
        let [Segment::Replacement(Replacement::Argument(None, part))] = segments else {
            return vec![self.fill(segments, number, arguments)];
        };
        let filled = |argument: &OsString| {
            let mut word = Vec::new();
            self.put(&mut word, argument.as_bytes(), *part);
            word
        };
        arguments.iter().map(filled).collect()
    }

    fn fill(&self, segments: &[Segment], number: u64, arguments: &[OsString]) -> Vec<u8> {
        let mut word = Vec::new();
        for segment in segments {
            match segment {
                Segment::Text(text) => word.extend_from_slice(text),
                Segment::Replacement(Replacement::Number) => {
                    word.extend_from_slice(number.to_string().as_bytes());
                }
                Segment::Replacement(Replacement::Slot) => word.extend_from_slice(SLOT_MARKER),
                Segment::Replacement(Replacement::Argument(Some(list), part)) => {
                    self.put(&mut word, arguments[list - 1].as_bytes(), *part);
                }
                Segment::Replacement(Replacement::Argument(None, part)) => {
                    for (index, argument) in arguments.iter().enumerate() {
                        if index > 0 {
                            word.push(b' ');
                        }
                        self.put(&mut word, argument.as_bytes(), *part);
                    }
                }
            }
        }
        word
    }

    fn put(&self, word: &mut Vec<u8>, argument: &[u8], part: Part) {
        let value = part.of(argument);
        if !self.is_shell || self.is_verbatim {
            word.extend_from_slice(value);
            return;
        }
        word.extend_from_slice(quote(OsStr::from_bytes(value)).as_bytes());
    }
}

impl Segment {
    fn replacement(&self) -> Option<Replacement> {
        match self {
            Self::Replacement(replacement) => Some(*replacement),
            Self::Text(_) => None,
        }
    }
}

impl Part {
    fn of(self, argument: &[u8]) -> &[u8] {
        match self {
            Self::Whole => argument,
            Self::Stem => without_extension(argument),
            Self::Name => name(argument),
            Self::NameStem => without_extension(name(argument)),
            Self::Folder => match argument.iter().rposition(|byte| *byte == b'/') {
                Some(0) => b"/",
                Some(slash) => &argument[..slash],
                None => b".",
            },
        }
    }
}

fn name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

fn without_extension(path: &[u8]) -> &[u8] {
    let start = path.len() - name(path).len();
    match path[start..].iter().rposition(|byte| *byte == b'.') {
        Some(dot) => &path[..start + dot],
        None => path,
    }
}

impl Grammar {
    fn segments(&self, word: &[u8]) -> Result<Vec<Segment>, TemplateError> {
        let mut segments = Vec::new();
        let mut text = Vec::new();
        let mut rest = word;
        while let Some(first) = rest.first() {
            if let Some((replacement, length)) = self.replacement_at(rest)? {
                if !text.is_empty() {
                    segments.push(Segment::Text(std::mem::take(&mut text)));
                }
                segments.push(Segment::Replacement(replacement));
                rest = &rest[length..];
            } else {
                text.push(*first);
                rest = &rest[1..];
            }
        }
        if !text.is_empty() || segments.is_empty() {
            segments.push(Segment::Text(text));
        }
        Ok(segments)
    }

    /// Returns the replacement string at the start of `text` and its length. Braces around anything
    /// else are text, unless GNU parallel would replace it.
    fn replacement_at(&self, text: &[u8]) -> Result<Option<(Replacement, usize)>, TemplateError> {
        if let Some(whole) = self.whole.as_ref().filter(|whole| text.starts_with(whole.as_bytes()))
        {
            let whole_argument = Replacement::Argument(None, Part::Whole);
            return Ok(Some((whole_argument, whole.len())));
        }
        let Some(inner) = text.strip_prefix(b"{") else { return Ok(None) };
        let Some(end) = inner.iter().position(|byte| *byte == b'}') else { return Ok(None) };
        let inner = &inner[..end];
        let Some(replacement) = self.replacement(inner) else {
            return match crate::gnu::replacement(inner) {
                None => Ok(None),
                Some(advice) => {
                    let inner = String::from_utf8_lossy(inner).into_owned();
                    Err(TemplateError::Unavailable { inner, advice })
                }
            };
        };
        Ok(Some((replacement, end + 2)))
    }

    /// Returns what the text between two braces stands for.
    fn replacement(&self, inner: &[u8]) -> Option<Replacement> {
        let (position, part) = self.position(inner)?;
        let part = match part {
            b"" => Part::Whole,
            b"." => Part::Stem,
            b"/" => Part::Name,
            b"//" => Part::Folder,
            b"/." => Part::NameStem,
            b"#" if position.is_none() => return Some(Replacement::Number),
            b"%" if position.is_none() => return Some(Replacement::Slot),
            _ => return None,
        };
        let is_renamed = part == Part::Whole && self.whole.is_some();
        let is_named = inner.first().is_some_and(|byte| !byte.is_ascii_digit());
        (!is_renamed || is_named).then_some(Replacement::Argument(position, part))
    }

    /// Separates the name or the number of an argument from what follows it.
    fn position<'a>(&self, inner: &'a [u8]) -> Option<(Option<usize>, &'a [u8])> {
        let named = (1..).zip(&self.names).filter_map(|(position, name)| {
            let rest = inner.strip_prefix(name.as_bytes()).filter(|_| !name.is_empty())?;
            matches!(rest, b"" | b"." | b"/" | b"//" | b"/.").then_some((Some(position), rest))
        });
        // Of two names, the longer one is meant.
        if let Some(found) = named.min_by_key(|(_, rest)| rest.len()) {
            return Some(found);
        }
        let digits = inner.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = inner.split_at(digits);
        if number.is_empty() {
            return Some((None, rest));
        }
        Some((Some(std::str::from_utf8(number).ok()?.parse().ok()?), rest))
    }
}

#[cfg(test)]
mod tests;
