//! The spelling of replacement strings.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use super::part::Part;
use super::{ArgumentPosition, Joining, Segment, TemplateError};
use crate::input::Row;

/// The spelling of replacement strings, and the arguments that they can refer to.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the properties do not depend on each other")]
pub(crate) struct Grammar {
    /// `true` for a command that is a line for the shell.
    pub(crate) is_shell: bool,
    /// `true` if arguments are not quoted for the shell: they are the commands.
    pub(crate) is_verbatim: bool,
    /// `true` if arguments are not appended to a command without replacement strings.
    pub(crate) appends_nothing: bool,
    /// The largest number of arguments of a job; `None` if it is not known in advance.
    pub(crate) arguments: Option<usize>,
    /// `true` if an argument that does not exist is empty instead of an error.
    pub(crate) is_lenient: bool,
    /// `true` if jobs may have fewer arguments than `arguments`; the others are empty.
    pub(crate) has_incomplete_jobs: bool,
    /// `true` if the number of arguments differs from job to job, so that none has a position.
    pub(crate) is_open_ended: bool,
    pub(crate) joining: Joining,
    /// The names of arguments, from the first.
    pub(crate) names: Row,
    /// The replacement string for whole arguments, if it is not `{}`.
    pub(crate) whole: Option<OsString>,
    /// `true` if there are more replacement strings: `--plus`.
    pub(crate) has_plus: bool,
}

impl Grammar {
    /// Returns the segments of a word.
    pub(super) fn segments(&self, word: &[u8]) -> Result<Vec<Segment>, TemplateError> {
        let mut segments = Vec::new();
        let mut text = Vec::new();
        let mut rest = word;
        while let Some(first) = rest.first() {
            if let Some((replacement, length)) = self.replacement_at(rest)? {
                if !text.is_empty() {
                    segments.push(Segment::Text(std::mem::take(&mut text)));
                }
                segments.push(replacement);
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

    /// Checks that a segment can refer to its argument.
    pub(super) fn check(&self, segment: &Segment) -> Result<(), TemplateError> {
        let Segment::Argument(position, _) = *segment else { return Ok(()) };
        if self.is_open_ended && position != ArgumentPosition::Each {
            return Err(TemplateError::OpenEnded { position });
        }
        match self.arguments {
            Some(arguments)
                if arguments > 0 && !self.is_lenient && !position.is_within(arguments) =>
            {
                Err(TemplateError::NoSuchArgument { position, arguments })
            }
            _ => Ok(()),
        }
    }

    /// Returns the replacement string at the start of `text` and its length. Braces around anything
    /// else are text, unless GNU parallel would replace it.
    fn replacement_at(&self, text: &[u8]) -> Result<Option<(Segment, usize)>, TemplateError> {
        if let Some(whole) = self.whole.as_ref().filter(|whole| text.starts_with(whole.as_bytes()))
        {
            let argument = Segment::Argument(ArgumentPosition::Each, Part::Whole);
            return Ok(Some((argument, whole.len())));
        }
        let Some(inner) = text.strip_prefix(b"{") else { return Ok(None) };
        let Some(end) = inner.iter().position(|byte| *byte == b'}') else { return Ok(None) };
        let inner = &inner[..end];
        let Some(replacement) = self.replacement(inner) else {
            return match crate::gnu::replacement(inner, self.has_plus) {
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
    fn replacement(&self, inner: &[u8]) -> Option<Segment> {
        if let Some(named) = self.named(inner) {
            return Some(named);
        }
        match inner {
            b"#" => return Some(Segment::Number),
            b"%" => return Some(Segment::Slot),
            b"slot" if self.has_plus => return Some(Segment::Slot),
            b"##" if self.has_plus => return Some(Segment::Total),
            b"0#" if self.has_plus => return Some(Segment::PaddedNumber),
            _ => {}
        }
        let from_end = inner.strip_prefix(b"-");
        let rest = from_end.unwrap_or(inner);
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = rest.split_at(digits);
        let position = match std::str::from_utf8(number).ok()? {
            number if from_end.is_some() => ArgumentPosition::Last(number.parse().ok()?),
            "" => ArgumentPosition::Each,
            number => ArgumentPosition::First(number.parse().ok()?),
        };
        let part = Part::parse(rest, self.has_plus)?;
        let is_renamed = part == Part::Whole && self.whole.is_some();
        (!is_renamed).then_some(Segment::Argument(position, part))
    }

    /// Returns the replacement string that begins with the name of an argument. Of two names, the
    /// longer one is meant.
    fn named(&self, inner: &[u8]) -> Option<Segment> {
        let of_name = |(position, name): (usize, &OsString)| {
            let rest = inner.strip_prefix(name.as_bytes()).filter(|_| !name.is_empty())?;
            let part = Part::parse(rest, self.has_plus)?;
            Some((rest.len(), Segment::Argument(ArgumentPosition::First(position), part)))
        };
        let named = (1..).zip(&self.names).filter_map(of_name);
        named.min_by_key(|(rest, _)| *rest).map(|(_, replacement)| replacement)
    }
}
