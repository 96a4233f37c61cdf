//! Commands with replacement strings: `gcc -c {} -o {.}.o`.

mod grammar;
mod part;

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use brigade::runner::{Job, quote};

pub(crate) use grammar::Grammar;
use part::Part;

/// A command with replacement strings.
///
/// Without a shell each word stays one argument, whatever is inserted into it. With a shell the
/// words are joined by spaces and inserted arguments are quoted, as in GNU parallel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    /// With a shell, the line is the concatenation of these.
    words: Vec<Vec<Segment>>,
    is_shell: bool,
    /// `true` if arguments are not quoted for the shell: they are the commands.
    is_verbatim: bool,
    is_lenient: bool,
    joining: Joining,
    /// The number of all jobs, once it is known.
    pub(crate) total: u64,
}

/// The form of a word that contains a replacement string for several arguments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Joining {
    /// One word, in which spaces separate the arguments; several if it is nothing but the
    /// replacement string.
    #[default]
    Spaces,
    /// Several words: the text before the arguments is in the first, the text after them in the
    /// last.
    Words,
    /// One word for each argument, each with the text before and after it.
    Repeated,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Text(Vec<u8>),
    /// `{#}`
    Number,
    /// `{0#}`: with leading zeros, all numbers have the same width
    PaddedNumber,
    /// `{##}`: the number of all jobs
    Total,
    /// `{%}`
    Slot,
    /// `{}`, `{2}`, `{.}`, `{2.}` and so on.
    Argument(ArgumentPosition, Part),
}

/// The arguments that a replacement string stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArgumentPosition {
    /// `{}`: all
    Each,
    /// `{2}`
    First(usize),
    /// `{-2}`: counted from the last
    Last(usize),
}

/// Stands for the slot until the job starts. No argument can contain it: it is not valid UTF-8
/// text.
pub(crate) const SLOT_MARKER: &[u8] = b"\x01\xffslot\xff\x01";
/// Number of digits that are reserved for a slot when the length of a command is estimated.
const SLOT_DIGITS: usize = 3;

/// A replacement string that has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateError {
    /// It refers to an argument that no job has.
    #[error(
        "`{{{position}}}` refers to an argument that does not exist: each job has only {arguments}"
    )]
    NoSuchArgument { position: ArgumentPosition, arguments: usize },
    /// It refers to an argument that a job does not have.
    #[error(
        "job {number} has only {arguments} arguments, but the command contains `{{{position}}}`"
    )]
    MissingArgument { number: u64, position: ArgumentPosition, arguments: usize },
    /// The number of arguments differs from job to job.
    #[error(
        "`{{{position}}}` cannot be used with -X, -m or --xargs, which give each job as many arguments as possible; limit \
         them with -n or -N, or use {{}}"
    )]
    OpenEnded { position: ArgumentPosition },
    /// It is one of GNU parallel's.
    #[error("GNU parallel's `{{{inner}}}` is not available in brigade: {advice}")]
    Unavailable { inner: String, advice: &'static str },
}

impl Template {
    /// Parses a command. If it has no replacement string, `{}` is appended, provided there are
    /// arguments.
    pub(crate) fn parse(words: &[OsString], grammar: &Grammar) -> Result<Self, TemplateError> {
        let parsed = words.iter().map(|word| grammar.segments(word.as_bytes()));
        let mut words: Vec<Vec<Segment>> = parsed.collect::<Result<_, _>>()?;
        let has_replacements = words.iter().flatten().any(Segment::is_replacement);
        if !has_replacements && grammar.arguments != Some(0) && !grammar.appends_nothing {
            words.push(vec![Segment::Argument(ArgumentPosition::Each, Part::Whole)]);
        }
        Self::new(words, grammar)
    }

    /// Parses a text that is one word and has no arguments appended.
    pub(crate) fn text(text: &OsStr, grammar: &Grammar) -> Result<Self, TemplateError> {
        let (is_shell, is_open_ended, joining) = (false, false, Joining::Spaces);
        let grammar = Grammar { is_shell, is_open_ended, joining, ..grammar.clone() };
        Self::new(vec![grammar.segments(text.as_bytes())?], &grammar)
    }

    fn new(words: Vec<Vec<Segment>>, grammar: &Grammar) -> Result<Self, TemplateError> {
        words.iter().flatten().try_for_each(|segment| grammar.check(segment))?;
        let words = if grammar.is_shell { line(words, grammar.joining) } else { words };
        let Grammar { is_shell, is_verbatim, joining, .. } = *grammar;
        let is_lenient = grammar.is_lenient || grammar.has_incomplete_jobs;
        Ok(Self { words, is_shell, is_verbatim, is_lenient, joining, total: 0 })
    }

    /// Returns `true` if the number of all jobs must be known before the first one.
    pub(crate) fn needs_total(&self) -> bool {
        self.has(|segment| matches!(segment, Segment::PaddedNumber | Segment::Total))
    }

    /// Returns the job for these arguments.
    pub(crate) fn job(&self, number: u64, arguments: &[OsString]) -> Result<Job, TemplateError> {
        let words = self.filled(number, arguments)?;
        let job = if self.is_shell {
            Job::shell(OsString::from_vec(words.concat()))
        } else {
            let mut words = words.into_iter().map(OsString::from_vec);
            Job::new(words.next().unwrap_or_default()).args(words)
        };
        let job = job.number(number);
        Ok(if self.has_slot() { job.slot_marker(OsStr::from_bytes(SLOT_MARKER)) } else { job })
    }

    /// Returns the words for these arguments, joined by spaces, with [`SLOT_MARKER`] for the slot.
    pub(crate) fn line(
        &self,
        number: u64,
        arguments: &[OsString],
    ) -> Result<Vec<u8>, TemplateError> {
        Ok(self.filled(number, arguments)?.join(&b' '))
    }

    /// Returns `true` if there are no replacement strings.
    pub(crate) fn is_constant(&self) -> bool {
        !self.has(Segment::is_replacement)
    }

    /// Returns `true` if the slot is among the replacement strings.
    pub(crate) fn has_slot(&self) -> bool {
        self.has(|segment| *segment == Segment::Slot)
    }

    /// Returns the length of the command line without the arguments that `{}` stands for. It may be
    /// negative: the length of each argument includes a space.
    pub(crate) fn base_length(&self, number: u64) -> isize {
        let lengths = self.words.iter().map(|segments| {
            let text: usize = segments
                .iter()
                .map(|segment| match segment {
                    Segment::Text(text) => text.len(),
                    Segment::Slot => SLOT_DIGITS,
                    Segment::Argument(..) => 0,
                    Segment::Number | Segment::PaddedNumber | Segment::Total => {
                        number.to_string().len()
                    }
                })
                .sum();
            match segments.iter().filter(|segment| segment.is_each()).count() {
                0 => text.cast_signed(),
                _ if self.joining == Joining::Repeated => -1,
                places => text.cast_signed() - places.cast_signed(),
            }
        });
        let spaces = if self.is_shell { 0 } else { self.words.len().cast_signed() - 1 };
        lengths.sum::<isize>() + spaces
    }

    /// Returns the length that the argument at this index adds to the command line.
    pub(crate) fn length_of(&self, argument: &OsStr, index: usize) -> usize {
        let lengths = self.words.iter().map(|segments| {
            let is_repeated =
                self.joining == Joining::Repeated && segments.iter().any(Segment::is_each);
            let parts: usize = segments
                .iter()
                .map(|segment| match segment {
                    Segment::Text(text) if is_repeated => text.len(),
                    Segment::Argument(ArgumentPosition::Each, part) => {
                        self.quoted(*part, argument).len() + usize::from(!is_repeated)
                    }
                    Segment::Argument(ArgumentPosition::First(at), part) if *at == index + 1 => {
                        self.quoted(*part, argument).len()
                    }
                    _ => 0,
                })
                .sum();
            parts + usize::from(is_repeated)
        });
        lengths.sum()
    }

    /// Returns the words of the command, or the parts of the line.
    fn filled(&self, number: u64, arguments: &[OsString]) -> Result<Vec<Vec<u8>>, TemplateError> {
        let filling = Filling { template: self, number, arguments };
        let mut words = Vec::new();
        for segments in &self.words {
            if !segments.iter().any(Segment::is_each) {
                words.extend(filling.cut(segments, &[])?);
                continue;
            }
            let is_alone = segments.len() == 1;
            let filled = if self.joining == Joining::Repeated && !arguments.is_empty() {
                let each = arguments.chunks(1).map(|argument| filling.cut(segments, argument));
                each.collect::<Result<Vec<_>, _>>()?.concat()
            } else {
                filling.cut(segments, arguments)?
            };
            if self.is_shell || (self.joining == Joining::Spaces && !is_alone) {
                words.push(filled.join(&b' '));
            } else if !(is_alone && arguments.is_empty()) {
                words.extend(filled);
            }
        }
        Ok(words)
    }

    fn has(&self, is_it: impl Fn(&Segment) -> bool) -> bool {
        self.words.iter().flatten().any(is_it)
    }

    fn quoted(&self, part: Part, argument: &OsStr) -> OsString {
        let value = OsStr::from_bytes(part.of(argument.as_bytes()));
        let is_quoted = self.is_shell && !self.is_verbatim;
        if is_quoted { quote(value).into_owned() } else { value.to_owned() }
    }
}

/// The values of replacement strings for a job.
struct Filling<'a> {
    template: &'a Template,
    number: u64,
    arguments: &'a [OsString],
}

impl Filling<'_> {
    /// Returns the words for a word: a new one begins between two arguments of `{}`.
    fn cut(&self, segments: &[Segment], each: &[OsString]) -> Result<Vec<Vec<u8>>, TemplateError> {
        let mut cut = Vec::new();
        let mut word = Vec::new();
        for segment in segments {
            let Segment::Argument(ArgumentPosition::Each, part) = segment else {
                word.extend_from_slice(&self.value(segment)?);
                continue;
            };
            for (index, argument) in each.iter().enumerate() {
                if index > 0 {
                    cut.push(std::mem::take(&mut word));
                }
                word.extend_from_slice(self.template.quoted(*part, argument).as_bytes());
            }
        }
        cut.push(word);
        Ok(cut)
    }

    /// Returns the text that stands for a segment.
    fn value<'s>(&self, segment: &'s Segment) -> Result<Cow<'s, [u8]>, TemplateError> {
        let total = self.template.total;
        Ok(match segment {
            Segment::Text(text) => text.into(),
            Segment::Number => self.number.to_string().into_bytes().into(),
            Segment::PaddedNumber => {
                let width = total.to_string().len();
                format!("{:0width$}", self.number).into_bytes().into()
            }
            Segment::Total => total.to_string().into_bytes().into(),
            Segment::Slot => SLOT_MARKER.into(),
            Segment::Argument(position, part) => match self.argument(*position)? {
                Some(argument) => self.template.quoted(*part, argument).into_vec().into(),
                None => Cow::default(),
            },
        })
    }

    fn argument(&self, position: ArgumentPosition) -> Result<Option<&OsString>, TemplateError> {
        let arguments = self.arguments.len();
        let index = match position {
            ArgumentPosition::Each => None,
            ArgumentPosition::First(first) => first.checked_sub(1),
            ArgumentPosition::Last(last) => arguments.checked_sub(last),
        };
        let argument = index.and_then(|index| self.arguments.get(index));
        if argument.is_none() && !self.template.is_lenient {
            let number = self.number;
            return Err(TemplateError::MissingArgument { number, position, arguments });
        }
        Ok(argument)
    }
}

/// Joins words to a line. If words are repeated, they are those between spaces.
fn line(words: Vec<Vec<Segment>>, joining: Joining) -> Vec<Vec<Segment>> {
    let mut line: Vec<Segment> = Vec::new();
    for (index, word) in words.into_iter().enumerate() {
        if index > 0 {
            line.push(Segment::Text(b" ".to_vec()));
        }
        line.extend(word);
    }
    if joining != Joining::Repeated {
        return vec![line];
    }
    let mut pieces = Vec::new();
    let mut piece = Vec::new();
    for segment in line {
        let Segment::Text(text) = segment else {
            piece.push(segment);
            continue;
        };
        for run in
            text.chunk_by(|left, right| left.is_ascii_whitespace() == right.is_ascii_whitespace())
        {
            let text = Segment::Text(run.to_vec());
            if run.iter().all(u8::is_ascii_whitespace) {
                pieces.extend([std::mem::take(&mut piece), vec![text]]);
            } else {
                piece.push(text);
            }
        }
    }
    pieces.push(piece);
    pieces
}

impl Segment {
    fn is_replacement(&self) -> bool {
        !matches!(self, Self::Text(_))
    }

    fn is_each(&self) -> bool {
        matches!(self, Self::Argument(ArgumentPosition::Each, _))
    }
}

impl ArgumentPosition {
    fn is_within(self, arguments: usize) -> bool {
        match self {
            Self::Each => true,
            Self::First(at) | Self::Last(at) => (1..=arguments).contains(&at),
        }
    }
}

/// Writes the number as in a replacement string.
impl fmt::Display for ArgumentPosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Each => Ok(()),
            Self::First(at) => write!(formatter, "{at}"),
            Self::Last(at) => write!(formatter, "-{at}"),
        }
    }
}

#[cfg(test)]
mod tests;
