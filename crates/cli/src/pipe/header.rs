//! The header of a stream, which every block begins with.

use std::io;

use regex::bytes::Regex;

use super::cutter::Cutter;

/// The header of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    kind: Kind,
    /// `None` until it was found.
    found: Option<Vec<u8>>,
}

#[derive(Debug, Clone)]
enum Kind {
    Lines(usize),
    Pattern(Regex),
}

/// A header that is not found in as many bytes is not there.
const MAX_BYTES: usize = 64 << 20;

impl Header {
    /// Returns a header of this number of lines.
    pub(crate) fn lines(count: usize) -> Self {
        Self { kind: Kind::Lines(count), found: (count == 0).then(Vec::new) }
    }

    /// Returns a header that matches a regular expression.
    pub(crate) fn matching(pattern: &str) -> Result<Self, regex::Error> {
        let pattern = Regex::new(&format!("\\A(?:{pattern})"))?;
        Ok(Self { kind: Kind::Pattern(pattern), found: None })
    }

    /// Returns `true` once the header is known.
    pub(crate) fn is_complete(&self) -> bool {
        self.found.is_some()
    }

    /// Returns the header; nothing if it was not found.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.found.as_deref().unwrap_or_default()
    }

    /// Looks for the header in the data of the cutter, and takes it from there.
    ///
    /// A pattern may match more when more has been read, so it is not looked for before a block is
    /// full or the stream is at its end: what is found must not depend on how the data arrives.
    pub(crate) fn find(&mut self, cutter: &mut Cutter, is_end: bool) -> io::Result<()> {
        if matches!(self.kind, Kind::Pattern(_)) && !is_end && !cutter.has_block() {
            return Ok(());
        }
        let bytes = cutter.bytes();
        if let Some(length) = self.length_in(bytes) {
            self.found = Some(bytes[..length].to_vec());
            cutter.remove(length);
            return Ok(());
        }
        Self::check_length(bytes)
    }

    /// Returns an error if these bytes should contain the header.
    pub(crate) fn check_length(bytes: &[u8]) -> io::Result<()> {
        if bytes.len() <= MAX_BYTES {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "the first {MAX_BYTES} bytes do not begin with the header; correct --header"
        )))
    }

    /// Returns the length of the header that the bytes begin with.
    pub(crate) fn length_in(&self, bytes: &[u8]) -> Option<usize> {
        match &self.kind {
            Kind::Lines(0) => Some(0),
            Kind::Lines(count) => {
                memchr::memchr_iter(b'\n', bytes).nth(count - 1).map(|end| end + 1)
            }
            Kind::Pattern(pattern) => pattern.find(bytes).map(|found| found.end()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::boundary::Boundary;
    use super::super::cutter::Amount;
    use super::*;

    #[test]
    fn a_header_does_not_depend_on_how_the_data_arrives() {
        let text = b"#a\n#b\n1\n2\n";
        let pattern = |size| (Header::matching("(#.*\n)*").expect("valid"), size);
        for (header, size) in [pattern(8), pattern(100), (Header::lines(2), 100)] {
            for step in 1..text.len() {
                let mut header = header.clone();
                let boundary = Boundary::between(b"\n".to_vec(), Vec::new());
                let mut cutter = Cutter::new(Amount::Records(boundary, 1), size);
                let mut rest = &text[..];
                while !rest.is_empty() {
                    let room = cutter.room();
                    let count = step.min(room.len()).min(rest.len());
                    room[..count].copy_from_slice(&rest[..count]);
                    rest = &rest[count..];
                    cutter.add(count);
                    if !header.is_complete() {
                        header.find(&mut cutter, false).expect("short");
                    }
                }
                if !header.is_complete() {
                    header.find(&mut cutter, true).expect("short");
                }
                assert_eq!((header.bytes(), cutter.bytes()), (&text[..6], &text[6..]), "{step}");
            }
        }
    }
}
