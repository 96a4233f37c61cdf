//! The options of `--pipe` and `--pipe-part`, checked.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::Path;

use brigade::runner::{BlockSharing, FilePart};
use miette::{IntoDiagnostic, Report, WrapErr, miette};

use super::boundary::Boundary;
use super::cutter::Amount;
use super::parts::Seekable;
use super::{Cut, Header};
use crate::arguments::{BlockSize, PipeOptions, Run};

/// The size of a block without `--block`.
const DEFAULT_SIZE: usize = 1 << 20;
/// The parts of files for each slot without `--block`.
const PARTS_PER_SLOT: f64 = 10.0;

impl Cut {
    /// Returns the cut that the options ask for.
    pub(crate) fn of(run: &Run) -> Result<Self, Report> {
        let options = &run.pipe;
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
            Some(0) => return Err(miette!("with --pipe, -N must be at least 1")),
            Some(records) => Amount::Records(boundary, records.saturating_mul(lines)),
            None if options.lines.is_some() => Amount::Lines(lines),
            None => Amount::Fitting(boundary),
        };
        let sharing = match (options.round_robin, run.keep_order) {
            (false, _) => None,
            (true, false) => Some(BlockSharing::ToTheNext),
            (true, true) => Some(BlockSharing::InTurns),
        };
        let (header, is_logged) = (parse_header(run)?, run.joblog.is_some());
        Ok(Self { amount, header, removed, size, is_logged, sharing })
    }
}

/// Returns the parts of the files of `--pipe-part`. `slots` is the number of jobs at once.
pub(crate) fn parts(run: &Run, slots: usize) -> Result<Vec<FilePart>, Report> {
    let (files, options) = (&run.lists.arg_file, &run.pipe);
    if options.records.is_some() || options.lines.is_some() || options.remove_rec_sep {
        return Err(miette!(
            help = "use --pipe and redirect standard input from the file",
            "--pipe-part does not look at each record, as -N, -L and --remove-rec-sep require"
        ));
    }
    let open = |path| {
        let file = Seekable::open(Path::new(path)).into_diagnostic();
        file.wrap_err_with(|| cannot_read(path))
    };
    let opened = files.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let size = match options.block.unwrap_or(BlockSize::PerSlot(PARTS_PER_SLOT)) {
        BlockSize::Bytes(size) => size as u64,
        BlockSize::PerSlot(parts) => {
            let length = opened.iter().map(|file| file.length).sum::<u64>();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_precision_loss,
                clippy::cast_sign_loss,
                reason = "a size need not be exact"
            )]
            let size = (length as f64 / slots as f64 / parts) as u64;
            size + 1
        }
    };
    let (boundary, header) = (boundary(options)?, parse_header(run)?);
    let mut parts = Vec::new();
    for (file, path) in opened.iter().zip(files) {
        let more = file.parts(size, &boundary, &header).into_diagnostic();
        parts.extend(more.wrap_err_with(|| cannot_read(path))?);
    }
    Ok(parts)
}

/// Returns the whole file of `--pipe-part --tee`.
pub(crate) fn whole(files: &[OsString]) -> Result<FilePart, Report> {
    let [file] = files else {
        return Err(miette!(
            help = "use `cat FILE FILE | brigade run --pipe --tee`",
            "--tee takes a single file"
        ));
    };
    let path = Path::new(file);
    let opened = Seekable::open(path).into_diagnostic();
    let length = opened.wrap_err_with(|| cannot_read(file))?.length;
    Ok(FilePart::new(path, 0..length))
}

fn cannot_read(file: &OsString) -> String {
    format!("cannot read {}", file.display())
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

fn parse_header(run: &Run) -> Result<Header, Report> {
    match run.lists.header.as_deref() {
        None => Ok(Header::lines(0)),
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
