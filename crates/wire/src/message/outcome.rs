//! The wire form of an outcome: its kind, and what follows the words of the message.

use super::words::{Reader, push, push_location, sized_word};
use crate::buffers;
use crate::error::MessageError;
use crate::outcome::{Buffered, Offered, Outcome, PanicReport};

pub(super) const VALUE: u8 = 16;
const PANICKED: u8 = 17;
const ARGUMENT_CODEC: u8 = 18;
const RESULT_CODEC: u8 = 19;
const UNKNOWN_FUNCTION: u8 = 20;
const VALUE_IN_ARENA: u8 = 22;
const BUFFERED: u8 = 23;
const BUFFERED_IN_ARENA: u8 = 24;
const OFFERED: u8 = 25;
const OFFERED_IN_PARTS: u8 = 26;

pub(super) fn kind(outcome: &Outcome<'_>) -> u8 {
    match outcome {
        Outcome::Value(_) => VALUE,
        Outcome::InArena(_) => VALUE_IN_ARENA,
        Outcome::Offered(Offered { in_parts: false, .. }) => OFFERED,
        Outcome::Offered(Offered { in_parts: true, .. }) => OFFERED_IN_PARTS,
        Outcome::Buffered(buffered) => match buffered.location {
            None => BUFFERED,
            Some(_) => BUFFERED_IN_ARENA,
        },
        Outcome::Panicked(_) => PANICKED,
        Outcome::ArgumentCodec(_) => ARGUMENT_CODEC,
        Outcome::ResultCodec(_) => RESULT_CODEC,
        Outcome::UnknownFunction(_) => UNKNOWN_FUNCTION,
    }
}

/// Appends everything but the payload.
#[inline]
pub(super) fn encode_head(outcome: &Outcome<'_>, head: &mut Vec<u8>) {
    match outcome {
        Outcome::Panicked(report) => append_report(head, report),
        Outcome::InArena(location) => push_location(head, *location),
        Outcome::Offered(Offered { block, address, length, counted, .. }) => {
            push(head, *block);
            push(head, *address);
            push(head, sized_word(*length, *counted));
        }
        Outcome::Buffered(buffered) => {
            if let Some(location) = buffered.location {
                push_location(head, location);
            }
        }
        _ => {}
    }
}

pub(super) fn payload<'a>(outcome: &'a Outcome<'_>) -> &'a [u8] {
    match outcome {
        Outcome::Value(value) => value,
        Outcome::Buffered(buffered) => buffered.payload,
        Outcome::ArgumentCodec(text)
        | Outcome::ResultCodec(text)
        | Outcome::UnknownFunction(text) => text.as_bytes(),
        Outcome::Panicked(_) | Outcome::InArena(_) | Outcome::Offered(_) => &[],
    }
}

#[inline]
pub(super) fn decode(kind: u8, payload: &[u8]) -> Result<Outcome<'_>, MessageError> {
    if kind == VALUE { Ok(Outcome::Value(payload)) } else { decode_other(kind, payload) }
}

/// Kept out of line: almost all outcomes are values inside the message.
#[cold]
fn decode_other(kind: u8, payload: &[u8]) -> Result<Outcome<'_>, MessageError> {
    let text = || {
        let text = std::str::from_utf8(payload);
        text.map(str::to_owned).map_err(|_| MessageError::Decode("text is not UTF-8"))
    };
    match kind {
        VALUE_IN_ARENA => {
            let mut reader = Reader(payload);
            let location = reader.location()?;
            reader.end("bytes after an arena location")?;
            Ok(Outcome::InArena(location))
        }
        OFFERED | OFFERED_IN_PARTS => {
            let mut reader = Reader(payload);
            let (block, address) = (reader.word()?, reader.word()?);
            let (length, counted) = reader.sized()?;
            let in_parts = kind == OFFERED_IN_PARTS;
            reader.end("bytes after an offer")?;
            Ok(Outcome::Offered(Offered { block, address, length, counted, in_parts }))
        }
        BUFFERED => {
            buffers::split(payload)?;
            Ok(Outcome::Buffered(Box::new(Buffered { location: None, payload })))
        }
        BUFFERED_IN_ARENA => {
            let mut reader = Reader(payload);
            let location = Some(reader.location()?);
            let payload = reader.0;
            match buffers::split(payload)? {
                ([], _) => Ok(Outcome::Buffered(Box::new(Buffered { location, payload }))),
                _ => Err(MessageError::Decode("bytes after an arena location")),
            }
        }
        PANICKED => match postcard::take_from_bytes(payload) {
            Ok((report, [])) => Ok(Outcome::Panicked(Box::new(report))),
            _ => Err(MessageError::Decode("malformed panic report")),
        },
        ARGUMENT_CODEC => Ok(Outcome::ArgumentCodec(text()?)),
        RESULT_CODEC => Ok(Outcome::ResultCodec(text()?)),
        UNKNOWN_FUNCTION => Ok(Outcome::UnknownFunction(text()?)),
        _ => Err(MessageError::Decode("unknown message kind")),
    }
}

#[expect(clippy::expect_used, reason = "strings always encode")]
fn append_report(head: &mut Vec<u8>, report: &PanicReport) {
    let report = postcard::to_stdvec(report).expect("strings always encode");
    head.extend(report);
}
