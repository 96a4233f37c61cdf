//! Finds tasks that the server would never deliver, and puts that right.
//!
//! After a crash, a server (of version 2.9 at least) may have messages again that were acknowledged
//! before. If they lie below the consumer's floor of acknowledged messages, it never delivers them,
//! and they count against the limit of the queue for ever. Each is looked at: if its task has an
//! outcome, the message is deleted; otherwise it is published again, and then deleted.

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use brigade_codec::chain;

use super::context::QueueContext;
use crate::message::TaskMessage;
use crate::names::Lane;

/// Every subject of the stream.
const EVERYTHING: &str = ">";

/// Number of messages that were found stuck.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Swept {
    pub(super) deleted: u64,
    pub(super) published_again: u64,
}

/// Number of messages in order that a look passes over. The order of the whole stream is looked at
/// too, because after a crash, version 2.9 does not find all messages by their subjects.
const PATIENCE: u32 = 1024;

/// A lane, and the sequence up to which everything was acknowledged, as far as its consumer knows.
struct Floor {
    filter: String,
    sequence: u64,
}

impl QueueContext {
    /// Looks at the lanes, which are all that exist. Several nodes may do this at the same time.
    pub(super) async fn sweep(&self, lanes: &[Lane]) -> Result<Swept, String> {
        let name = self.names().tasks_stream();
        let tasks = self.jetstream.get_stream(name).await.map_err(|error| chain(&error))?;
        let state = &tasks.cached_info().state;
        if state.messages == 0 {
            return Ok(Swept::default());
        }
        // Before the states of the consumers, so that they know all of these messages.
        let last = state.last_sequence;
        let mut floors = Vec::new();
        for lane in lanes {
            floors.push(self.floor(lane, last).await?);
        }
        let mut swept = Swept::default();
        for floor in &floors {
            self.sweep_subjects(&tasks, &floor.filter, std::slice::from_ref(floor), &mut swept)
                .await?;
        }
        self.sweep_subjects(&tasks, EVERYTHING, &floors, &mut swept).await?;
        Ok(swept)
    }

    /// `last` is the last sequence of the stream, as of before.
    async fn floor(&self, lane: &Lane, last: u64) -> Result<Floor, String> {
        let (name, stream) = (lane.consumer(), self.names().tasks_stream());
        let found = self.jetstream.get_consumer_from_stream(name, stream).await;
        let consumer: PullConsumer = found.map_err(|error| chain(&error))?;
        let info = consumer.cached_info();
        let sequence = match (info.num_ack_pending, info.num_pending) {
            // There should be nothing. The leader of the consumer may have lost a message that the
            // leader of the stream has.
            (0, 0) => info.delivered.stream_sequence.max(last),
            (0, _) => info.delivered.stream_sequence,
            _ => info.ack_floor.stream_sequence,
        };
        Ok(Floor { filter: self.names().lane_filter(lane), sequence })
    }

    /// Looks at the messages with subjects that match `filter`, up to the highest of the floors.
    async fn sweep_subjects(
        &self,
        tasks: &Stream,
        filter: &str,
        floors: &[Floor],
        swept: &mut Swept,
    ) -> Result<(), String> {
        let highest = floors.iter().map(|floor| floor.sequence).max().unwrap_or_default();
        let (mut next, mut patience) = (1, PATIENCE);
        while patience > 0 {
            // The leader answers: after the deaths of several servers it may have messages that the
            // others, which answer direct requests too, have removed.
            let message = match tasks.get_first_raw_message_by_subject(filter, next).await {
                Ok(message) if message.sequence <= highest => message,
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => return Ok(()),
                Err(error) => return Err(chain(&error)),
            };
            next = message.sequence + 1;
            let subject = message.subject.as_str();
            let is_of = |floor: &&Floor| subject.starts_with(floor.filter.trim_end_matches('>'));
            let floor = floors.iter().find(is_of);
            if floor.is_some_and(|floor| message.sequence <= floor.sequence) {
                self.put_right(tasks, message, swept).await?;
            } else {
                patience -= 1;
            }
        }
        Ok(())
    }

    /// Removes a stuck message whose task has an outcome, and replaces others.
    async fn put_right(
        &self,
        tasks: &Stream,
        message: StreamMessage,
        swept: &mut Swept,
    ) -> Result<(), String> {
        // A message that nobody can read is delivered again, to a node that says so.
        let is_done = match TaskMessage::from_bytes(&message.payload) {
            Ok(task) => self.has_outcome(&task.head.key).await?,
            Err(_) => false,
        };
        if is_done {
            swept.deleted += 1;
        } else {
            let mut headers = HeaderMap::new();
            let id = format!("sweep-{}", message.sequence);
            headers.insert(async_nats::header::NATS_MESSAGE_ID, id.as_str());
            let publish =
                self.jetstream.publish_with_headers(message.subject, headers, message.payload);
            let stored = publish.await.map_err(|error| chain(&error))?;
            stored.await.map_err(|error| chain(&error))?;
            swept.published_again += 1;
        }
        // Fails if another node was faster.
        let _ = tasks.delete_message(message.sequence).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use async_nats::jetstream;
    use brigade_testkit::{BOUND, NatsServer, Watchdog};

    use super::*;
    use crate::message::{Body, ItemsBuilder, TaskHead};
    use crate::names::{ItemId, Names, Origin, Priority, Queue, TaskKey};
    use crate::needs::Class;
    use crate::setup::QueueSettings;
    use crate::stale_server::StaleServer;

    fn key(number: u64) -> TaskKey {
        TaskKey { origin: Origin::batch("b").unwrap(), item: ItemId::number(number) }
    }

    /// Looks for stuck messages, with a consumer that says how much it has delivered. There are two
    /// tasks, the first of which has an outcome.
    async fn sweep(url: &str, delivered: u64) -> (Swept, Vec<u64>) {
        let settings = QueueSettings::new(Names::new(Queue::default()));
        let real = jetstream::new(async_nats::connect(url).await.unwrap());
        let names = settings.names.clone();
        let mut context = QueueContext::open(real.clone(), settings.clone()).await.unwrap();
        let lane = Lane { priority: Priority::default(), class: Class::default() };
        settings.ensure_lane(&real, &lane).await.unwrap();
        let publish = async |subject: String, message: bytes::Bytes| {
            real.publish(subject, message).await.unwrap().await.unwrap();
        };
        for number in 1..=2 {
            let head = TaskHead::new(key(number), "double/1".to_owned());
            let body = Body::Inline(ItemsBuilder::default().finish());
            let message = TaskMessage { head, body }.to_bytes().unwrap();
            publish(names.task(&lane, &key(number)), message).await;
        }
        publish(names.outcome(&key(1)), "an outcome".into()).await;
        context.jetstream = StaleServer::start(url, delivered).await;
        let swept = context.sweep(&[lane]).await.unwrap();
        let tasks = real.get_stream(names.tasks_stream()).await.unwrap();
        let left = &tasks.cached_info().state;
        (swept, vec![left.messages, left.first_sequence])
    }

    fn assert_that_both_are_found(delivered: u64) {
        if !NatsServer::installed() {
            return;
        }
        let _watchdog = Watchdog::new("a test of stuck messages", BOUND);
        let server = NatsServer::start();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let found = runtime.block_on(sweep(&server.url(), delivered));
        let swept = Swept { deleted: 1, published_again: 1 };
        assert_eq!(found, (swept, vec![1, 3]), "one message is left, which is a new one");
    }

    #[test]
    fn messages_are_found_that_followers_have_removed() {
        assert_that_both_are_found(2);
    }

    #[test]
    fn messages_are_found_that_the_consumer_does_not_know() {
        assert_that_both_are_found(0);
    }
}
