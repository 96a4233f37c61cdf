//! Finds tasks that the server would never deliver, and puts that right.
//!
//! After a crash, a server (of version 2.9 at least) may have messages again that were acknowledged
//! before. If they lie below the consumer's floor of acknowledged messages, it never delivers them,
//! and they count against the limit of the queue for ever. Each is looked at: if its task has an
//! outcome, the message is deleted; otherwise it is published again, and then deleted.

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::stream::{DirectGetErrorKind, Stream};
use brigade_codec::chain;

use super::context::QueueContext;
use crate::message::TaskMessage;
use crate::names::Lane;

/// Number of messages that were found stuck.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Swept {
    pub(super) deleted: u64,
    pub(super) published_again: u64,
}

impl QueueContext {
    /// Looks at all lanes. Several nodes may do this at the same time.
    pub(super) async fn sweep(&self) -> Result<Swept, String> {
        let lanes = self.settings.lanes(&self.jetstream).await.map_err(|error| chain(&error))?;
        let name = self.names().tasks_stream();
        let tasks = self.jetstream.get_stream_no_info(name).await.map_err(|error| chain(&error))?;
        let mut swept = Swept::default();
        for lane in &lanes {
            self.sweep_lane(&tasks, lane, &mut swept).await?;
        }
        Ok(swept)
    }

    async fn sweep_lane(
        &self,
        tasks: &Stream<()>,
        lane: &Lane,
        swept: &mut Swept,
    ) -> Result<(), String> {
        let found =
            self.jetstream.get_consumer_from_stream(lane.consumer(), self.names().tasks_stream());
        let mut consumer: PullConsumer = found.await.map_err(|error| chain(&error))?;
        let info = consumer.info().await.map_err(|error| chain(&error))?;
        // Everything up to here was acknowledged, as far as the consumer knows.
        let floor = if info.num_ack_pending == 0 {
            info.delivered.stream_sequence
        } else {
            info.ack_floor.stream_sequence
        };
        let filter = self.names().lane_filter(lane);
        let mut next = 1;
        loop {
            let message = match tasks.direct_get_next_for_subject(&filter, Some(next)).await {
                Ok(message) if message.sequence <= floor => message,
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == DirectGetErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(chain(&error)),
            };
            next = message.sequence + 1;
            let task = TaskMessage::from_bytes(&message.payload);
            // A message that nobody can read is delivered again, to a node that says so.
            let is_done = match &task {
                Ok(task) => self.has_outcome(&task.head.key).await?,
                Err(_) => false,
            };
            if is_done {
                swept.deleted += 1;
            } else {
                let mut headers = HeaderMap::new();
                let id = format!("sweep-{}", message.sequence);
                headers.insert(async_nats::header::NATS_MESSAGE_ID, id.as_str());
                let subject = message.subject.clone();
                let publish =
                    self.jetstream.publish_with_headers(subject, headers, message.payload.clone());
                let stored = publish.await.map_err(|error| chain(&error))?;
                stored.await.map_err(|error| chain(&error))?;
                swept.published_again += 1;
            }
            // Fails if another node was faster.
            let _ = tasks.delete_message(message.sequence).await;
        }
    }
}
