//! The options of `--pipe`, checked.

use std::num::NonZeroUsize;

use miette::{IntoDiagnostic, Report, WrapErr, miette};

use super::boundary::Boundary;
use super::cutter::Amount;
use super::{Cut, Header};
use crate::arguments::{BlockSize, PipeOptions};

/// The size of a block without `--block`.
const DEFAULT_SIZE: usize = 1 << 20;

impl Cut {
    /// Returns the cut that the options ask for.
    pub(crate) fn of(
        options: &PipeOptions,
        header: Option<&str>,
        is_logged: bool,
    ) -> Result<Self, Report> {
        let size = match options.block {
            None => DEFAULT_SIZE,
            Some(BlockSize::Bytes(size)) => size,
            Some(BlockSize::PerSlot(_)) => {
                return Err(miette!(
                    help = "use a size such as --block 10M, or --pipe-part for a file",
                    "the length of standard input is not known, so `--block` cannot be a number of blocks"
                ));
            }
        };
        let boundary = boundary(options)?;
        let removed = options.remove_rec_sep.then(|| boundary.clone());
        let lines = options.lines.map_or(1, NonZeroUsize::get);
        let amount = match options.records {
            Some(records) => Amount::Records(boundary, records.get().saturating_mul(lines)),
            None if options.lines.is_some() => Amount::Lines(lines),
            None => Amount::Fitting(boundary),
        };
        Ok(Self { amount, header: parse_header(header)?, removed, size, is_logged })
    }
}

/// Returns the places between records.
fn boundary(options: &PipeOptions) -> Result<Boundary, Report> {
    let default = if options.recstart.is_none() { "\\n" } else { "" };
    let end = options.recend.as_deref().unwrap_or(default);
    let start = options.recstart.as_deref().unwrap_or_default();
    if options.regexp {
        let boundary = Boundary::matching(end, start).into_diagnostic();
        return boundary.wrap_err("cannot use --recend and --recstart as regular expressions");
    }
    Ok(Boundary::between(unescaped(end), unescaped(start)))
}

fn parse_header(text: Option<&str>) -> Result<Header, Report> {
    match text {
        None => Ok(Header::none()),
        Some(":") => Ok(Header::lines(1)),
        Some(text) => match text.parse() {
            Ok(lines) => Ok(Header::lines(lines)),
            Err(_) => Header::matching(text)
                .into_diagnostic()
                .wrap_err("cannot use --header as a regular expression"),
        },
    }
}

/// Returns a text with its escapes replaced: those of `printf` that GNU parallel knows.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let escaped = match (byte, rest.clone().next()) {
            (b'\\', Some(b'n')) => b'\n',
            (b'\\', Some(b'r')) => b'\r',
            (b'\\', Some(b't')) => b'\t',
            (b'\\', Some(b'0')) => 0,
            (b'\\', Some(letter @ (b'\\' | b'\'' | b'"'))) => letter,
            _ => {
                bytes.push(byte);
                continue;
            }
        };
        rest.next();
        bytes.push(escaped);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_stand_for_bytes() {
        assert_eq!(unescaped(r"a\n\t\0\\n\q\"), b"a\n\t\0\\n\\q\\");
    }
}
