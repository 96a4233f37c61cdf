//! The texts of a table: quoted as in CSV, or as strings of JSON. An output of any size is passed
//! on in pieces.

use std::io::{self, Write};
use std::mem;

/// A writer that passes pieces of a text to a function.
struct Pieces<F>(F);

impl<F: FnMut(&[u8]) -> io::Result<()>> Write for Pieces<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.0)(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a field of CSV: the text that `fill` writes, in quotes if it needs them. GNU parallel
/// quotes white space as well.
pub(super) fn write_field(
    writer: &mut impl Write,
    separator: u8,
    fill: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let is_special =
        |byte: &u8| *byte == separator || matches!(byte, b'"' | b' ' | b'\t' | b'\n' | b'\r');
    let mut needs_quotes = false;
    fill(&mut Pieces(|bytes: &[u8]| {
        needs_quotes |= bytes.iter().any(is_special);
        Ok(())
    }))?;
    if !needs_quotes {
        return fill(writer);
    }
    writer.write_all(b"\"")?;
    fill(&mut Pieces(|bytes: &[u8]| {
        for piece in bytes.split_inclusive(|byte| *byte == b'"') {
            writer.write_all(piece)?;
            if piece.ends_with(b"\"") {
                writer.write_all(b"\"")?;
            }
        }
        Ok(())
    }))?;
    writer.write_all(b"\"")
}

const REPLACEMENT: &str = "\u{fffd}";

/// Writes a string of JSON: the text that `fill` writes. Bytes that are not UTF-8 become U+FFFD.
pub(super) fn write_string(
    writer: &mut impl Write,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    writer.write_all(b"\"")?;
    // The start of a character that may go on in the next piece.
    let mut pending = Vec::new();
    fill(&mut Pieces(|bytes: &[u8]| {
        let mut text = mem::take(&mut pending);
        text.extend_from_slice(bytes);
        let mut chunks = text.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            escape(writer, chunk.valid())?;
            if chunks.peek().is_none() {
                pending = chunk.invalid().to_vec();
            } else {
                writer.write_all(REPLACEMENT.as_bytes())?;
            }
        }
        Ok(())
    }))?;
    if !pending.is_empty() {
        writer.write_all(REPLACEMENT.as_bytes())?;
    }
    writer.write_all(b"\"")
}

fn escape(writer: &mut impl Write, text: &str) -> io::Result<()> {
    let is_special = |character: char| matches!(character, '"' | '\\' | '\0'..='\x1f');
    for piece in text.split_inclusive(is_special) {
        let special = piece.chars().next_back().filter(|last| is_special(*last));
        let plain = &piece[..piece.len() - usize::from(special.is_some())];
        writer.write_all(plain.as_bytes())?;
        match special {
            None => {}
            Some(quote @ ('"' | '\\')) => write!(writer, "\\{quote}")?,
            Some(control) => write!(writer, "\\u{:04x}", u32::from(control))?,
        }
    }
    Ok(())
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
            write_string(&mut written, |text| {
                bytes.chunks(size).try_for_each(|piece| text.write_all(piece))
            }).expect("memory");
            let read: String = serde_json::from_slice(&written).expect("JSON");
            prop_assert_eq!(read, String::from_utf8_lossy(&bytes));
        }
    }
}
