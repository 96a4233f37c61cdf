//! A `tracing` event on its way from a worker to the host.
//!
//! ```text
//! length of the rest (two bytes, little-endian)   the event (postcard)
//! ```
//! An encoded event has at most [`EVENT_LIMIT`] bytes. A pipe takes so few bytes as a whole or not
//! at all, so events of several threads, and of forks of the worker, do not mix.

use serde::{Deserialize, Serialize};
use tracing::Level;

use crate::error::MessageError;

/// Maximum number of bytes of an encoded event, with its length: `PIPE_BUF` of Linux.
pub const EVENT_LIMIT: usize = 4096;

/// Maximum number of fields of an event. `tracing` allows 32, and the host adds some of its own.
pub const MAX_FIELDS: usize = 24;

/// An event that was emitted in a worker. An event without a target only reports lost ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerEvent<'a> {
    /// The level.
    pub level: EventLevel,
    /// The target.
    #[serde(borrow)]
    pub target: &'a str,
    /// Source file.
    pub file: Option<&'a str>,
    /// Line in the source file.
    pub line: Option<u32>,
    /// Number and attempt of the task that was running.
    pub task: Option<(u64, u32)>,
    /// Number of events that were lost before this one.
    pub lost: u64,
    /// Names and values, at most [`MAX_FIELDS`].
    pub fields: Vec<(&'a str, FieldValue<'a>)>,
}

/// The level of an event, from 0 for an error to 4. What a worker says beyond that counts as 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLevel(u8);

const LEVELS: [Level; 5] = [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE];

impl From<Level> for EventLevel {
    fn from(level: Level) -> Self {
        Self((0..).zip(LEVELS).find(|(_, it)| *it == level).map_or(u8::MAX, |(number, _)| number))
    }
}

impl From<EventLevel> for Level {
    fn from(EventLevel(number): EventLevel) -> Self {
        LEVELS.get(usize::from(number)).copied().unwrap_or(Self::TRACE)
    }
}

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum FieldValue<'a> {
    /// A truth value.
    Bool(bool),
    /// A signed number.
    I64(i64),
    /// An unsigned number.
    U64(u64),
    /// A floating-point number.
    F64(f64),
    /// A text.
    Text(&'a str),
    /// Any other value, formatted by its `Debug`.
    Formatted(&'a str),
}

impl<'a> WorkerEvent<'a> {
    /// Returns an event that says only how many were lost.
    pub fn lost(count: u64) -> Self {
        let (level, fields) = (Level::WARN.into(), Vec::new());
        Self { level, target: "", file: None, line: None, task: None, lost: count, fields }
    }

    /// Encodes the event with its length.
    ///
    /// # Errors
    /// If it is too long, or has too many fields.
    pub fn encode(&self) -> Result<Vec<u8>, MessageError> {
        let bytes = postcard::to_extend(self, vec![0; LENGTH]);
        let mut bytes = bytes.map_err(|_| MessageError::Encode("an event"))?;
        if bytes.len() > EVENT_LIMIT || self.fields.len() > MAX_FIELDS {
            return Err(MessageError::Encode("the event is too long"));
        }
        let length = u16::try_from(bytes.len() - LENGTH).unwrap_or(u16::MAX);
        bytes[..LENGTH].copy_from_slice(&length.to_le_bytes());
        Ok(bytes)
    }

    /// Decodes the event at the front of `bytes`, and returns the rest. Returns `None` if the event
    /// is not complete.
    ///
    /// # Errors
    /// If the bytes are not an event.
    pub fn take(bytes: &'a [u8]) -> Result<Option<(Self, &'a [u8])>, MessageError> {
        let Some((length, rest)) = bytes.split_first_chunk::<LENGTH>() else { return Ok(None) };
        let length = usize::from(u16::from_le_bytes(*length));
        if length > EVENT_LIMIT - LENGTH {
            return Err(MessageError::Decode("an event that is too long"));
        }
        let Some((event, rest)) = rest.split_at_checked(length) else { return Ok(None) };
        match postcard::take_from_bytes::<Self>(event) {
            Ok((event, [])) if event.fields.len() <= MAX_FIELDS => Ok(Some((event, rest))),
            _ => Err(MessageError::Decode("malformed event")),
        }
    }
}

/// Number of bytes of the length.
const LENGTH: usize = 2;

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event<'a>(target: &'a str, fields: &[(&'a str, FieldValue<'a>)]) -> WorkerEvent<'a> {
        let fields = fields.to_vec();
        WorkerEvent { target, fields, task: Some((7, 1)), ..WorkerEvent::lost(3) }
    }

    #[test]
    fn events_decode_to_themselves_one_after_the_other() {
        let fields = [("message", FieldValue::Formatted("hello")), ("n", FieldValue::I64(-1))];
        let (first, second) = (event("one", &fields), event("two", &[]));
        let mut bytes = first.encode().unwrap();
        bytes.extend(second.encode().unwrap());
        let (taken, rest) = WorkerEvent::take(&bytes).unwrap().unwrap();
        assert_eq!(taken, first);
        for end in 0..rest.len() {
            assert_eq!(WorkerEvent::take(&rest[..end]), Ok(None), "not complete");
        }
        let (taken, rest) = WorkerEvent::take(rest).unwrap().unwrap();
        assert_eq!((taken, rest), (second, &[][..]));
    }

    #[test]
    fn levels_arrive_as_they_were_and_unknown_ones_as_the_last() {
        let arrived = LEVELS.map(|level| Level::from(EventLevel::from(level)));
        assert_eq!(arrived, LEVELS);
        assert_eq!(Level::from(EventLevel(5)), Level::TRACE);
    }

    #[test]
    fn events_that_are_too_long_are_errors() {
        let text = "x".repeat(EVENT_LIMIT);
        assert!(event(&text, &[]).encode().is_err());
        let fields = [("n", FieldValue::Bool(true)); MAX_FIELDS + 1];
        assert!(event("many", &fields).encode().is_err());
        assert!(WorkerEvent::take(&[0xff; 3]).is_err(), "even before it is complete");
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_event_or_an_error(bytes: Vec<u8>) {
            let mut framed = u16::try_from(bytes.len()).unwrap().to_le_bytes().to_vec();
            framed.extend(&bytes);
            for bytes in [&bytes, &framed] {
                if let Ok(Some((event, rest))) = WorkerEvent::take(bytes) {
                    prop_assert!(rest.len() < bytes.len());
                    prop_assert!(event.fields.len() <= MAX_FIELDS);
                }
            }
        }
    }
}
