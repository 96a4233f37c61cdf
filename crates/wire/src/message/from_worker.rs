//! The encoding of messages of workers.

use std::time::Duration;

use brigade_sys::clock::Monotonic;

use super::outcome::{self, VALUE};
use super::words::{Reader, first_word, push, split_first_word};
use super::{Finished, FromWorker, IS_WORN, ITEM, Item, KEEPS, RELEASES, SKIPPED, WANTS, Wanted};
use crate::error::MessageError;
use crate::segments;
use brigade_base::{Attempt, TaskId};

impl<'a> FromWorker<'a> {
    /// Appends everything but the payload to `head`.
    #[inline]
    pub fn encode_head(&self, head: &mut Vec<u8>) {
        let outcome = match self {
            Self::Finished(finished) => {
                let kind = outcome::kind(&finished.outcome);
                let flags = if finished.worn { IS_WORN } else { 0 };
                push(head, first_word(kind, flags, finished.ring_index, finished.attempt.get()));
                push(head, finished.task.get());
                push(head, u64::try_from(finished.run_time.as_nanos()).unwrap_or(u64::MAX));
                push(head, finished.began.as_nanos());
                &finished.outcome
            }
            Self::Item(item) => {
                let kind = outcome::kind(&item.outcome) + ITEM;
                push(head, first_word(kind, 0, item.ring_index, item.index));
                &item.outcome
            }
            Self::Skipped { task, attempt, ring_index } => {
                push(head, first_word(SKIPPED, 0, *ring_index, attempt.get()));
                return push(head, task.get());
            }
            Self::Wants(Wanted { ring_index, block, address }) => {
                push(head, first_word(WANTS, 0, *ring_index, 0));
                push(head, *block);
                return push(head, *address);
            }
            Self::Keeps(_) => return push(head, first_word(KEEPS, 0, 0, 0)),
            Self::Releases(_) => return push(head, first_word(RELEASES, 0, 0, 0)),
        };
        outcome::encode_head(outcome, head);
    }

    /// Returns the payload, which follows the head.
    pub fn payload(&self) -> &[u8] {
        match self {
            Self::Finished(Finished { outcome, .. }) | Self::Item(Item { outcome, .. }) => {
                outcome::payload(outcome)
            }
            Self::Keeps(buffers) | Self::Releases(buffers) => buffers,
            Self::Skipped { .. } | Self::Wants(_) => &[],
        }
    }

    /// Decodes the message in `bytes`.
    ///
    /// # Errors
    /// [`MessageError`] if `bytes` is not a message.
    #[expect(
        clippy::inline_always,
        reason = "passing the parts through memory costs a tenth of the host's time for a task"
    )]
    #[inline(always)]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader(bytes);
        let (kind, flags, ring_index, number) = split_first_word(reader.word()?);
        let is_finished = (VALUE..ITEM).contains(&kind) && kind != SKIPPED;
        if flags & !(if is_finished { IS_WORN } else { 0 }) != 0 {
            return Err(MessageError::Decode("unknown flags"));
        }
        if let Some(kind) = kind.checked_sub(ITEM) {
            let outcome = outcome::decode(kind, reader.0)?;
            return Ok(Self::Item(Item { ring_index, index: number, outcome }));
        }
        if kind == WANTS {
            return decode_wanted(ring_index, reader);
        }
        if kind < VALUE {
            return decode_list(kind, reader.0);
        }
        let (task, attempt) = (TaskId::new(reader.word()?), Attempt::new(number));
        if kind == SKIPPED {
            reader.end("skip message with a payload")?;
            return Ok(Self::Skipped { task, attempt, ring_index });
        }
        let run_time = Duration::from_nanos(reader.word()?);
        let began = Monotonic::from_nanos(reader.word()?);
        let outcome = outcome::decode(kind, reader.0)?;
        let worn = flags & IS_WORN != 0;
        Ok(Self::Finished(Finished { task, attempt, ring_index, run_time, began, worn, outcome }))
    }
}

#[cold]
fn decode_wanted(ring_index: u16, mut reader: Reader<'_>) -> Result<FromWorker<'_>, MessageError> {
    let (block, address) = (reader.word()?, reader.word()?);
    reader.end("bytes after wanted numbers")?;
    Ok(FromWorker::Wants(Wanted { ring_index, block, address }))
}

#[cold]
fn decode_list(kind: u8, payload: &[u8]) -> Result<FromWorker<'_>, MessageError> {
    if !segments::split(payload)?.0.is_empty() {
        return Err(MessageError::Decode("bytes before a list of segments"));
    }
    match kind {
        KEEPS => Ok(FromWorker::Keeps(payload)),
        RELEASES => Ok(FromWorker::Releases(payload)),
        _ => Err(MessageError::Decode("unknown message kind")),
    }
}
