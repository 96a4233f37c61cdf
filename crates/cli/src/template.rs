//! A command with places for arguments: `gcc -c {} -o {.}.o`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use brigade::runner::{Job, quote};

/// A command with places for arguments.
///
/// Without a shell each word stays one argument whatever is put into it. With a shell the words are joined by spaces and
/// what is put in is quoted, as GNU parallel does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    words: Vec<Vec<Piece>>,
    is_shell: bool,
    has_slot: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    Place(Place),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// `{#}`
    Number,
    /// `{%}`
    Slot,
    /// `{}`, `{2}`, `{.}`, `{2.}` and so on: of which list, or of all.
    Argument(Option<usize>, Part),
}

/// Which part of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// `{}`
    Whole,
    /// `{.}`: without its extension
    Stem,
    /// `{/}`: without its folder
    Name,
    /// `{//}`: its folder
    Folder,
    /// `{/.}`: without folder and extension
    NameStem,
}

/// Stands for the slot until the job starts. No argument can contain it, as it is no text.
const SLOT_MARKER: &[u8] = b"\x01\xffslot\xff\x01";

/// A place that names a list that is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{{{list}}}` names argument {list}, but there are only {lists}")]
pub(crate) struct NoSuchList {
    pub(crate) list: usize,
    pub(crate) lists: usize,
}

impl Template {
    /// Reads a command. One without any place for arguments gets `{}` at its end, if there are arguments.
    pub(crate) fn parse(
        words: &[OsString],
        is_shell: bool,
        lists: usize,
    ) -> Result<Self, NoSuchList> {
        let mut words: Vec<Vec<Piece>> = words.iter().map(|word| pieces(word.as_bytes())).collect();
        let places = || words.iter().flatten().filter_map(Piece::place);
        let has_arguments = places().any(|place| matches!(place, Place::Argument(..)));
        let has_slot = places().any(|place| place == Place::Slot);
        for place in places() {
            if let Place::Argument(Some(list), _) = place
                && !(1..=lists).contains(&list)
            {
                return Err(NoSuchList { list, lists });
            }
        }
        if !has_arguments && lists > 0 {
            words.push(vec![Piece::Place(Place::Argument(None, Part::Whole))]);
        }
        Ok(Self { words, is_shell, has_slot })
    }

    /// The job for these arguments.
    pub(crate) fn job(&self, number: u64, arguments: &[OsString]) -> Job {
        let words = self.words.iter().map(|pieces| self.fill(pieces, number, arguments));
        let job = if self.is_shell {
            let words: Vec<Vec<u8>> = words.collect();
            Job::shell(OsString::from_vec(words.join(&b' ')))
        } else {
            let mut words = words.map(OsString::from_vec);
            Job::new(words.next().unwrap_or_default()).args(words)
        };
        let job = job.number(number);
        if self.has_slot { job.slot_marker(OsStr::from_bytes(SLOT_MARKER)) } else { job }
    }

    fn fill(&self, pieces: &[Piece], number: u64, arguments: &[OsString]) -> Vec<u8> {
        let mut word = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => word.extend_from_slice(text),
                Piece::Place(Place::Number) => {
                    word.extend_from_slice(number.to_string().as_bytes());
                }
                Piece::Place(Place::Slot) => word.extend_from_slice(SLOT_MARKER),
                Piece::Place(Place::Argument(Some(list), part)) => {
                    self.put(&mut word, arguments[list - 1].as_bytes(), *part);
                }
                Piece::Place(Place::Argument(None, part)) => {
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
        if !self.is_shell {
            word.extend_from_slice(value);
            return;
        }
        if let Ok(text) = std::str::from_utf8(value) {
            word.extend_from_slice(quote(text).as_bytes());
        } else {
            // Within single quotes a shell takes every byte but the quote as it is.
            word.push(b'\'');
            let quoted: Vec<&[u8]> = value.split(|byte| *byte == b'\'').collect();
            word.extend_from_slice(&quoted.join(&br"'\''"[..]));
            word.push(b'\'');
        }
    }
}

impl Piece {
    fn place(&self) -> Option<Place> {
        match self {
            Self::Place(place) => Some(*place),
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

fn pieces(word: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut text = Vec::new();
    let mut rest = word;
    while let Some(first) = rest.first() {
        if let Some((place, length)) = place_at(rest) {
            if !text.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
            }
            pieces.push(Piece::Place(place));
            rest = &rest[length..];
        } else {
            text.push(*first);
            rest = &rest[1..];
        }
    }
    if !text.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(text));
    }
    pieces
}

/// The place that begins here, and how long it is. Braces around anything else are text.
fn place_at(text: &[u8]) -> Option<(Place, usize)> {
    let inner = text.strip_prefix(b"{")?;
    let end = inner.iter().position(|byte| *byte == b'}')?;
    let inner = &inner[..end];
    let length = end + 2;
    let digits = inner.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (list, part) = inner.split_at(digits);
    let list =
        if list.is_empty() { None } else { Some(std::str::from_utf8(list).ok()?.parse().ok()?) };
    let part = match part {
        b"" => Part::Whole,
        b"." => Part::Stem,
        b"/" => Part::Name,
        b"//" => Part::Folder,
        b"/." => Part::NameStem,
        b"#" if list.is_none() => return Some((Place::Number, length)),
        b"%" if list.is_none() => return Some((Place::Slot, length)),
        _ => return None,
    };
    Some((Place::Argument(list, part), length))
}

#[cfg(test)]
mod tests;
