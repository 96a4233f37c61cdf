//! Finds tasks that the server would never deliver, and puts that right.
//!
//! After a crash, a server (of version 2.9 at least) may have messages again that were acknowledged
//! before. If they lie below the consumer's floor of acknowledged messages, it never delivers them,
//! and they count against the limit of the queue for ever. Each is looked at: if its task has an
//! outcome, the message is deleted; otherwise it is published again, and then deleted.
//!
//! A floor stays low while its consumer waits for a message that its server has lost, and a
//! consumer without a leader says nothing. So the oldest messages above the floors are looked at
//! too. Those with an outcome may be about to be acknowledged: each is deleted if it is still there
//! at the next look.

use std::collections::BTreeSet;

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::Stream;
use brigade_codec::chain;

use crate::message::TaskMessage;
use crate::names::Lane;
use crate::publisher::Publication;
use crate::server::Server;
use crate::stored_message::first_message;
use crate::task_name::{KEY_HEADER, TYPES_HEADER, key_of};

/// Every subject of the stream.
const EVERYTHING: &str = ">";

/// The stuck messages that a look has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StuckMessages {
    pub(super) deleted: u64,
    pub(super) published_again: u64,
    /// Sequences of messages above the floors whose tasks have outcomes.
    pub(super) done: BTreeSet<u64>,
}

impl StuckMessages {
    /// Returns `true` if there was a stuck message.
    pub(super) fn found_any(&self) -> bool {
        self.deleted + self.published_again > 0
    }
}

/// Number of messages in order that a look passes over. The order of the whole stream is looked at
/// too, because after a crash, version 2.9 does not find all messages by their subjects.
const PATIENCE: u32 = 1024;

/// Number of messages above the floors, of tasks without an outcome, after which a look ends.
const UNDONE_LIMIT: u32 = 8;

/// A lane, and the sequence up to which everything was acknowledged, as far as its consumer knows.
struct Floor {
    filter: String,
    sequence: u64,
}

impl Server {
    /// Looks at the lanes, which are all that exist. Several nodes may do this at the same time.
    /// `done` is from the last look.
    pub(super) async fn sweep(
        &self,
        lanes: &[Lane],
        done: &BTreeSet<u64>,
    ) -> Result<StuckMessages, String> {
        let name = self.names().tasks_stream();
        let tasks = self.jetstream.get_stream(name).await.map_err(|error| chain(&error))?;
        let state = &tasks.cached_info().state;
        if state.messages == 0 {
            return Ok(StuckMessages::default());
        }
        // Before the states of the consumers, so that they know all of these messages.
        let last = state.last_sequence;
        let mut floors = Vec::new();
        for lane in lanes {
            match self.floor(lane, last).await {
                Ok(floor) => floors.push(floor),
                Err(reason) => {
                    tracing::debug!(lane = lane.consumer(), reason, "a consumer does not answer");
                }
            }
        }
        let mut swept = StuckMessages::default();
        for floor in &floors {
            self.sweep_lane(&tasks, floor, &mut swept).await?;
        }
        self.sweep_in_order(&tasks, &floors, done, &mut swept).await?;
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

    /// Looks at the messages of a lane, up to its floor.
    async fn sweep_lane(
        &self,
        tasks: &Stream,
        floor: &Floor,
        swept: &mut StuckMessages,
    ) -> Result<(), String> {
        let mut next = 1;
        while let Some(message) = first_message(tasks, &floor.filter, next).await?
            && message.sequence <= floor.sequence
        {
            next = message.sequence + 1;
            self.put_right(tasks, message, swept).await?;
        }
        Ok(())
    }

    /// Looks at the oldest messages of the stream.
    async fn sweep_in_order(
        &self,
        tasks: &Stream,
        floors: &[Floor],
        done: &BTreeSet<u64>,
        swept: &mut StuckMessages,
    ) -> Result<(), String> {
        let highest = floors.iter().map(|floor| floor.sequence).max().unwrap_or_default();
        let (mut next, mut patience, mut undone) = (1, PATIENCE, 0);
        while patience > 0
            && let Some(message) = first_message(tasks, EVERYTHING, next).await?
            && (message.sequence <= highest || undone < UNDONE_LIMIT)
        {
            next = message.sequence + 1;
            let subject = message.subject.as_str();
            let is_of = |floor: &&Floor| subject.starts_with(floor.filter.trim_end_matches('>'));
            let floor = floors.iter().find(is_of);
            if floor.is_some_and(|floor| message.sequence <= floor.sequence) {
                self.put_right(tasks, message, swept).await?;
                continue;
            }
            patience -= 1;
            if undone == UNDONE_LIMIT {
                continue;
            }
            if !self.is_done(&message).await? {
                undone += 1;
            } else if done.contains(&message.sequence) {
                swept.deleted += 1;
                delete(tasks, message.sequence).await;
            } else {
                swept.done.insert(message.sequence);
            }
        }
        Ok(())
    }

    /// Returns `true` if the task of a message has an outcome. A message that nobody can read is
    /// delivered again, to a node that says so.
    async fn is_done(&self, message: &StreamMessage) -> Result<bool, String> {
        match TaskMessage::from_bytes(&message.payload) {
            Ok(task) => self.has_outcome(&task.head.key).await,
            Err(_) => Ok(false),
        }
    }

    /// Removes a stuck message whose task has an outcome, and replaces others.
    async fn put_right(
        &self,
        tasks: &Stream,
        message: StreamMessage,
        swept: &mut StuckMessages,
    ) -> Result<(), String> {
        if self.is_done(&message).await? {
            swept.deleted += 1;
        } else {
            let mut headers = HeaderMap::new();
            // Nodes that find the same message publish it once. A sequence alone does not name it:
            // after crashes, servers may give one again.
            let id = format!("sweep-{}-{}", message.sequence, message.subject);
            headers.insert(NATS_MESSAGE_ID, id.as_str());
            if let Some(key) = key_of(Some(&message.headers), &message.subject) {
                headers.insert(KEY_HEADER, key.to_string());
            }
            if let Some(types) = message.headers.get(TYPES_HEADER) {
                headers.insert(TYPES_HEADER, types.clone());
            }
            let StreamMessage { subject, payload, .. } = message;
            let again = Publication { subject, headers, payload };
            self.publish(again).await.map_err(|error| chain(&error))?;
            swept.published_again += 1;
        }
        delete(tasks, message.sequence).await;
        Ok(())
    }
}

async fn delete(tasks: &Stream, sequence: u64) {
    // Fails if another node was faster.
    let _ = tasks.delete_message(sequence).await;
}

#[cfg(test)]
mod tests {
    use async_nats::jetstream;
    use brigade_testkit::{BOUND, NatsServer, Watchdog};

    use super::*;
    use crate::message::{Body, ItemsBuilder, TaskHead};
    use crate::names::{ItemId, Names, Origin, Priority, Queue, TaskKey};
    use crate::requirements::Class;
    use crate::setup::QueueSettings;
    use crate::tests::stale_server::{Consumers, StaleServer};

    fn key(number: u64) -> TaskKey {
        TaskKey { origin: Origin::batch("b").unwrap(), item: ItemId::number(number) }
    }

    /// Looks for stuck messages twice, while consumers give a fixed answer. There are two tasks,
    /// the first of which has an outcome. Returns the number of messages that are left, and the
    /// sequence of the first.
    async fn sweep(url: &str, consumers: Consumers) -> ([StuckMessages; 2], [u64; 2]) {
        let settings = QueueSettings::new(Names::new(Queue::default()));
        let client = async_nats::connect(url).await.unwrap();
        let real = jetstream::new(client.clone());
        let names = settings.names.clone();
        let mut server = Server::open(client, settings.clone()).await.unwrap();
        let lane = Lane { priority: Priority::default(), class: Class::default() };
        settings.ensure_lane(&real, &lane).await.unwrap();
        let publish = async |subject: String, message: bytes::Bytes| {
            real.publish(subject, message).await.unwrap().await.unwrap();
        };
        // After crashes, sequences may be given again. Here, 3 was found stuck before.
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, "sweep-3");
        let other = real.publish_with_headers(names.task(&lane, &key(9)), headers, "".into());
        let stored = other.await.unwrap().await.unwrap();
        let tasks = real.get_stream(names.tasks_stream()).await.unwrap();
        tasks.delete_message(stored.sequence).await.unwrap();
        for number in 1..=2 {
            let head = TaskHead::new(key(number), "double/1".to_owned());
            let body = Body::Inline(ItemsBuilder::default().finish());
            let message = TaskMessage { head, body }.to_bytes().unwrap();
            publish(names.task(&lane, &key(number)), message).await;
        }
        publish(names.outcome(&key(1)), "an outcome".into()).await;
        server.jetstream = StaleServer::start(url, consumers).await;
        let lanes = [lane];
        let first = server.sweep(&lanes, &BTreeSet::new()).await.unwrap();
        let second = server.sweep(&lanes, &first.done).await.unwrap();
        let tasks = real.get_stream(names.tasks_stream()).await.unwrap();
        let left = &tasks.cached_info().state;
        ([first, second], [left.messages, left.first_sequence])
    }

    fn found(consumers: Consumers) -> Option<([StuckMessages; 2], [u64; 2])> {
        if !NatsServer::installed() {
            return None;
        }
        let _watchdog = Watchdog::new("a test of stuck messages", BOUND);
        let server = NatsServer::start();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Some(runtime.block_on(sweep(&server.url(), consumers)))
    }

    fn assert_that_both_are_found(delivered: u64) {
        let Some(([swept, _], left)) = found(Consumers::Done { delivered }) else { return };
        assert_eq!((swept.deleted, swept.published_again), (1, 1));
        let [messages, first] = left;
        assert!(messages == 1 && first > 3, "one message is left, which is a new one: {left:?}");
    }

    /// The message above the floor may be about to be acknowledged at the first look.
    fn assert_that_the_done_one_is_found_by_the_second_look(consumers: Consumers) {
        let Some(([first, second], left)) = found(consumers) else { return };
        assert_eq!(first, StuckMessages { done: BTreeSet::from([2]), ..StuckMessages::default() });
        assert_eq!(second, StuckMessages { deleted: 1, ..StuckMessages::default() });
        assert_eq!(left, [1, 3], "the task without an outcome is left");
    }

    #[test]
    fn messages_are_found_that_followers_have_removed() {
        assert_that_both_are_found(2);
    }

    #[test]
    fn messages_are_found_that_the_consumer_does_not_know() {
        assert_that_both_are_found(0);
    }

    #[test]
    fn messages_behind_one_that_never_comes_are_found() {
        assert_that_the_done_one_is_found_by_the_second_look(Consumers::Waiting);
    }

    #[test]
    fn messages_are_found_although_the_consumer_has_no_leader() {
        assert_that_the_done_one_is_found_by_the_second_look(Consumers::Away);
    }
}
