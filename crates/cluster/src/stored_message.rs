//! Reads messages of streams by their subjects. The leader of the stream answers, because its
//! followers, which answer direct requests too, may not have heard of the last messages, and after
//! the deaths of several servers may have removed messages that it has.

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{RawMessageError, RawMessageErrorKind, Stream};
use brigade_codec::chain;

/// Returns the last message on a subject.
pub(crate) async fn last_message(
    stream: &Stream<()>,
    subject: &str,
) -> Result<Option<StreamMessage>, String> {
    found(stream.get_last_raw_message_by_subject(subject).await)
}

/// Returns the first message on a subject from a sequence on.
pub(crate) async fn first_message<I>(
    stream: &Stream<I>,
    subject: &str,
    sequence: u64,
) -> Result<Option<StreamMessage>, String> {
    found(stream.get_first_raw_message_by_subject(subject, sequence).await)
}

/// Returns a message if it exists.
pub(crate) fn found(
    answer: Result<StreamMessage, RawMessageError>,
) -> Result<Option<StreamMessage>, String> {
    match answer {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(chain(&error)),
    }
}
