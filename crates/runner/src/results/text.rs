//! Writers for the texts of a table: quoted as in CSV, or as strings of JSON. They pass an output
//! of any size on in pieces.

use std::io::{self, Write};

/// Finds out whether a field of CSV needs quotes. GNU parallel quotes white space as well.
#[derive(Debug)]
pub(super) struct SpecialBytes {
    separator: u8,
    pub(super) found: bool,
}

impl SpecialBytes {
    pub(super) fn new(separator: u8) -> Self {
        Self { separator, found: false }
    }
}

impl Write for SpecialBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.found |= bytes.iter().any(|byte| {
            *byte == self.separator || matches!(byte, b'"' | b' ' | b'\t' | b'\n' | b'\r')
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a field of CSV in quotes.
#[derive(Debug)]
pub(super) struct QuotedText<'a, W: Write>(&'a mut W);

impl<'a, W: Write> QuotedText<'a, W> {
    /// Writes the text that `fill` writes, in quotes.
    pub(super) fn write(
        writer: &'a mut W,
        fill: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        writer.write_all(b"\"")?;
        let mut text = Self(writer);
        fill(&mut text)?;
        text.0.write_all(b"\"")
    }
}

impl<W: Write> Write for QuotedText<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'"') {
            self.0.write_all(piece)?;
            if piece.ends_with(b"\"") {
                self.0.write_all(b"\"")?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes a string of JSON. Bytes that are not UTF-8 become U+FFFD.
#[derive(Debug)]
pub(super) struct JsonText<'a, W: Write> {
    writer: &'a mut W,
    /// The start of a character that may go on in the next piece.
    pending: Vec<u8>,
}

const REPLACEMENT: &str = "\u{fffd}";

impl<'a, W: Write> JsonText<'a, W> {
    /// Writes the text that `fill` writes, as a string with quotes.
    pub(super) fn write(
        writer: &'a mut W,
        fill: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        writer.write_all(b"\"")?;
        let mut text = Self { writer, pending: Vec::new() };
        fill(&mut text)?;
        if !text.pending.is_empty() {
            text.writer.write_all(REPLACEMENT.as_bytes())?;
        }
        text.writer.write_all(b"\"")
    }

    fn escape(&mut self, text: &str) -> io::Result<()> {
        let is_special = |character: char| matches!(character, '"' | '\\' | '\0'..='\x1f');
        for piece in text.split_inclusive(is_special) {
            let special = piece.chars().next_back().filter(|last| is_special(*last));
            let plain = &piece[..piece.len() - usize::from(special.is_some())];
            self.writer.write_all(plain.as_bytes())?;
            match special {
                None => {}
                Some(quote @ ('"' | '\\')) => write!(self.writer, "\\{quote}")?,
                Some(control) => write!(self.writer, "\\u{:04x}", u32::from(control))?,
            }
        }
        Ok(())
    }
}

impl<W: Write> Write for JsonText<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut text = std::mem::take(&mut self.pending);
        text.extend_from_slice(bytes);
        let mut chunks = text.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.escape(chunk.valid())?;
            if chunk.invalid().is_empty() {
                continue;
            }
            if chunks.peek().is_none() {
                self.pending = chunk.invalid().to_vec();
            } else {
                self.writer.write_all(REPLACEMENT.as_bytes())?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_string_of_json_is_the_same_in_any_pieces(
            text in ".{0,10}",
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            size in 1..9_usize,
        ) {
            let bytes = [text.as_bytes(), &bytes].concat();
            let mut written = Vec::new();
            JsonText::write(&mut written, |text| {
                bytes.chunks(size).try_for_each(|piece| text.write_all(piece))
            }).expect("memory");
            let read: String = serde_json::from_slice(&written).expect("JSON");
            prop_assert_eq!(read, String::from_utf8_lossy(&bytes));
        }
    }
}
