//! The places between records.

use std::borrow::Cow;

use memchr::memmem;
use regex::bytes::Regex;

/// The places where a record ends and the next one begins.
#[derive(Debug, Clone)]
pub(crate) enum Boundary {
    /// Within a text, after this number of its bytes. In an empty one, they are after each byte.
    Text { text: Vec<u8>, end: usize },
    /// Between matches of two patterns.
    Pattern(Box<Patterns>),
}

/// The patterns for ends and starts of records.
#[derive(Debug, Clone)]
pub(crate) struct Patterns {
    /// An end in its only group, then a start.
    both: Regex,
    /// A start, at the start of a text.
    start: Regex,
    /// An end, at the end of a text.
    end: Regex,
    has_start: bool,
}

impl Boundary {
    /// Returns the places after `end` and before `start`.
    pub(crate) fn between(end: Vec<u8>, start: Vec<u8>) -> Self {
        Self::Text { end: end.len(), text: [end, start].concat() }
    }

    /// Returns the places between matches of two regular expressions.
    pub(crate) fn matching(end: &str, start: &str) -> Result<Self, regex::Error> {
        if end.is_empty() && start.is_empty() {
            return Ok(Self::between(Vec::new(), Vec::new()));
        }
        let regex = |text: String| Regex::new(&text);
        // As in GNU parallel, where `^` and `$` match at lines.
        let patterns = Patterns {
            both: regex(format!("(?m:((?:{end}))(?:{start}))"))?,
            start: regex(format!("\\A(?m:(?:{start}))"))?,
            end: regex(format!("(?m:(?:{end}))\\z"))?,
            has_start: !start.is_empty(),
        };
        Ok(Self::Pattern(Box::new(patterns)))
    }

    /// Returns the first place after `from`.
    pub(crate) fn next(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let place = match self {
            Self::Text { text, end } => {
                // Without an end, the start of the first record is no boundary.
                let search = if *end == 0 { from + 1 } else { from };
                let rest = bytes.get(search..)?;
                let at = match text.as_slice() {
                    [byte] => memchr::memchr(*byte, rest)?,
                    text => memmem::find(rest, text)?,
                };
                search + at + end
            }
            Self::Pattern(patterns) => patterns.next(bytes, from)?,
        };
        (place <= bytes.len()).then_some(place)
    }

    /// Returns the last place after the start of the bytes.
    pub(crate) fn last(&self, bytes: &[u8]) -> Option<usize> {
        let place = match self {
            Self::Text { text, end } => memmem::rfind(bytes, text)? + end,
            Self::Pattern(patterns) => {
                let next = |from: &usize| patterns.next(bytes, *from);
                std::iter::successors(next(&0), next).last()?
            }
        };
        (place > 0).then_some(place)
    }

    /// Returns a place at which a part of a file may be cut, in bytes that begin anywhere: the
    /// first one, or the last one between patterns.
    pub(crate) fn cut(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Text { text, end } => Some(memmem::find(bytes, text)? + end),
            Self::Pattern(_) => self.last(bytes),
        }
    }

    /// Returns `true` if the bytes begin with a record.
    pub(crate) fn begins_record(&self, bytes: &[u8]) -> bool {
        match self {
            Self::Pattern(patterns) => !patterns.has_start || patterns.start.is_match(bytes),
            Self::Text { .. } => true,
        }
    }

    /// Returns `true` if the records are found by patterns.
    pub(crate) fn is_pattern(&self) -> bool {
        matches!(self, Self::Pattern(_))
    }

    /// Removes the texts around and between records.
    pub(crate) fn remove_from<'a>(&self, block: &'a [u8]) -> Cow<'a, [u8]> {
        match self {
            Self::Text { text, .. } if text.is_empty() => block.into(),
            Self::Text { text, end } => {
                let (end, start) = text.split_at(*end);
                let mut records = Vec::with_capacity(block.len());
                let mut from = 0;
                for at in memmem::find_iter(block, text) {
                    records.extend_from_slice(&block[from..at]);
                    from = at + text.len();
                }
                records.extend_from_slice(&block[from..]);
                if records.starts_with(start) {
                    records.drain(..start.len());
                }
                if records.ends_with(end) {
                    records.truncate(records.len() - end.len());
                }
                records.into()
            }
            Self::Pattern(patterns) => {
                let nothing = &b""[..];
                let records = patterns.both.replace_all(block, nothing).into_owned();
                let records = patterns.start.replace(&records, nothing).into_owned();
                patterns.end.replace(&records, nothing).into_owned().into()
            }
        }
    }
}

impl Patterns {
    fn next(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let mut search = from;
        loop {
            let found = self.both.captures_at(bytes, search)?;
            let (whole, end) = (found.get(0)?, found.get(1)?);
            if end.end() > from {
                return Some(end.end());
            }
            // An empty end, where the search began.
            search = whole.start() + 1;
            if search > bytes.len() {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(boundary: &Boundary, text: &str) -> Vec<usize> {
        let next = |from: &usize| boundary.next(text.as_bytes(), *from);
        std::iter::successors(next(&0), next).collect()
    }

    fn between(end: &str, start: &str) -> Boundary {
        Boundary::between(end.into(), start.into())
    }

    #[test]
    fn boundaries_lie_between_end_and_start() {
        for (boundary, text, places) in [
            (between("", ""), "abc", vec![1, 2, 3]),
            (between("\n", ""), "\na\nb", vec![1, 3]),
            (between("", ">"), ">a>b>", vec![2, 4]),
            (between("\n", ">"), ">a\nb\n>c\n>", vec![5, 8]),
            (Boundary::matching("[,;]", "").expect("valid"), "a,b;c", vec![2, 4]),
            (Boundary::matching("", "^>").expect("valid"), ">a>\n>b", vec![4]),
            (Boundary::matching("\n", "[AB]").expect("valid"), "A\nx\nB\nA", vec![4, 6]),
        ] {
            assert_eq!(all(&boundary, text), places, "{boundary:?}");
            assert_eq!(boundary.last(text.as_bytes()), places.last().copied(), "{boundary:?}");
        }
    }

    #[test]
    fn what_separates_records_can_be_removed() {
        for (boundary, text, rest) in [
            (between(";", ""), "a;b;", "ab"),
            (between("\n", ">"), ">a\n>b\n", "ab"),
            (Boundary::matching(";+", "<").expect("valid"), "<a;;<b;", "ab"),
            (between("", ""), "ab", "ab"),
        ] {
            assert_eq!(boundary.remove_from(text.as_bytes()), rest.as_bytes(), "{boundary:?}");
        }
    }
}
