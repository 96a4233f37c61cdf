//! The wire form of an outcome: its kind, and what follows the words of the message.

use super::words::{Reader, push, push_location};
use crate::error::MessageError;
use crate::outcome::{Outcome, PanicReport, Segmented};
use crate::segments;

pub(super) const VALUE: u8 = 16;
const PANICKED: u8 = 17;
const ARGUMENT_CODEC: u8 = 18;
const RESULT_CODEC: u8 = 19;
const UNKNOWN_FUNCTION: u8 = 20;
const VALUE_IN_ARENA: u8 = 22;
/// Plus the next two.
const SEGMENTED: u8 = 23;
const ENCODED_IN_ARENA: u8 = 1;
const OFFERED: u8 = 2;
const SEGMENTED_AND_ALL: u8 = SEGMENTED + ENCODED_IN_ARENA + OFFERED;

pub(super) fn kind(outcome: &Outcome<'_>) -> u8 {
    match outcome {
        Outcome::Value(_) => VALUE,
        Outcome::InArena(_) => VALUE_IN_ARENA,
        Outcome::Segmented(segmented) => {
            let location = segmented.location.map_or(0, |_| ENCODED_IN_ARENA);
            SEGMENTED + location + segmented.offer.map_or(0, |_| OFFERED)
        }
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
        Outcome::Segmented(segmented) => {
            if let Some(location) = segmented.location {
                push_location(head, location);
            }
            if let Some(block) = segmented.offer {
                push(head, block);
            }
        }
        _ => {}
    }
}

pub(super) fn payload<'a>(outcome: &'a Outcome<'_>) -> &'a [u8] {
    match outcome {
        Outcome::Value(value) => value,
        Outcome::Segmented(segmented) => segmented.payload,
        Outcome::ArgumentCodec(text)
        | Outcome::ResultCodec(text)
        | Outcome::UnknownFunction(text) => text.as_bytes(),
        Outcome::Panicked(_) | Outcome::InArena(_) => &[],
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
        SEGMENTED..=SEGMENTED_AND_ALL => {
            let mut reader = Reader(payload);
            let has = |flag| (kind - SEGMENTED) & flag != 0;
            let location = has(ENCODED_IN_ARENA).then(|| reader.location()).transpose()?;
            let offer = has(OFFERED).then(|| reader.word()).transpose()?;
            let payload = reader.0;
            let (encoded, _) = segments::split(payload)?;
            if location.is_some() && !encoded.is_empty() {
                return Err(MessageError::Decode("bytes after an arena location"));
            }
            Ok(Outcome::Segmented(Box::new(Segmented { location, offer, payload })))
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
