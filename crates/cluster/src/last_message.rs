//! Reads the last message on a subject.

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use brigade_codec::chain;

/// Returns the last message on a subject. The leader of the stream answers, because its followers
/// may not have heard of the last messages.
pub(crate) async fn last_message(
    stream: &Stream<()>,
    subject: &str,
) -> Result<Option<StreamMessage>, String> {
    match stream.get_last_raw_message_by_subject(subject).await {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(chain(&error)),
    }
}
