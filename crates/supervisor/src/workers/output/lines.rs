//! Splits the bytes of a pipe into lines.

/// Maximum length of a line. A longer one is split into several.
const MAX_LINE: usize = 8 * 1024;

/// The incomplete line at the end of the input; shorter than [`MAX_LINE`] between calls.
#[derive(Debug, Default)]
pub(super) struct IncompleteLine {
    partial: Vec<u8>,
}

impl IncompleteLine {
    /// Calls `give` for every line that is completed by `bytes`, without its newline. Invalid UTF-8
    /// is replaced.
    pub(super) fn take(&mut self, mut bytes: &[u8], mut give: impl FnMut(&str)) {
        while !bytes.is_empty() {
            let room = MAX_LINE - self.partial.len();
            let end = bytes.iter().take(room + 1).position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(bytes.len().min(room));
            self.partial.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if end.is_some() {
                bytes = &bytes[1..];
                give(&text(without_return(&self.partial)));
                self.partial.clear();
            } else if self.partial.len() == MAX_LINE && !bytes.is_empty() {
                let cut = boundary(&self.partial);
                give(&text(&self.partial[..cut]));
                self.partial.drain(..cut);
            }
        }
    }

    /// Calls `give` with the rest after the last newline, if there is one.
    pub(super) fn finish(&mut self, mut give: impl FnMut(&str)) {
        if !self.partial.is_empty() {
            give(&text(without_return(&self.partial)));
            self.partial.clear();
        }
    }
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Returns the position at which an overlong line is split: before an incomplete character.
fn boundary(line: &[u8]) -> usize {
    let start = line.iter().rposition(|byte| !is_continuation(*byte)).unwrap_or(line.len());
    match std::str::from_utf8(&line[start..]) {
        Err(error) if error.error_len().is_none() && start > 0 => start,
        _ => line.len(),
    }
}

const fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let mut lines = IncompleteLine::default();
        let mut found = Vec::new();
        for piece in pieces {
            lines.take(piece, |line| found.push(line.to_owned()));
            assert!(lines.partial.len() <= MAX_LINE);
        }
        lines.finish(|line| found.push(line.to_owned()));
        found
    }

    #[test]
    fn a_line_ends_with_a_newline_or_with_the_stream() {
        assert_eq!(lines(&[b"one\ntw", b"o\r\n\nfour"]), ["one", "two", "", "four"]);
        assert_eq!(lines(&[b"one\n"]), ["one"]);
        assert_eq!(lines(&[b""]), [""; 0]);
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(lines(&[b"a\xffb\n"]), ["a\u{fffd}b"]);
    }

    #[test]
    fn a_long_line_is_split_between_characters() {
        let long = "é".repeat(MAX_LINE);
        for before in ["", "x"] {
            let text = format!("{before}{long}\nshort");
            let found = lines(&[text.as_bytes()]);
            assert_eq!(found.last().unwrap(), "short");
            assert_eq!(found[..found.len() - 1].concat(), format!("{before}{long}"));
            assert!(found.iter().all(|line| line.len() <= MAX_LINE && !line.contains('\u{fffd}')));
        }
        let exact = "x".repeat(MAX_LINE);
        assert_eq!(lines(&[exact.as_bytes(), b"\n"]), [exact.as_str()], "it just fits");
        assert_eq!(
            lines(&[&vec![0x80; 3 * MAX_LINE]]).len(),
            3,
            "bytes without a character boundary are split anywhere"
        );
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_bytes_are_split(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200),
            repeat in 1..100_usize, piece in 1..10_000_usize,
        ) {
            let bytes = bytes.repeat(repeat);
            let pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
            prop_assert_eq!(lines(&pieces), lines(&[&bytes]));
        }
    }
}
