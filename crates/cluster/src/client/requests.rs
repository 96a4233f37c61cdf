//! Requests of a client to the server, besides publications and outcomes.

use std::time::Duration;

use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PushConsumer, push};
use async_nats::jetstream::stream::DirectGetErrorKind;
use brigade_codec::chain;
use bytes::Bytes;
use futures_util::TryStreamExt;

use super::cursor::HEARTBEAT;
use super::submission::message_id;
use crate::error::ClusterError;
use crate::message::CancelMessage;
use crate::names::{Lane, Origin, TaskKey};
use crate::server::Server;
use crate::setup::{Retry, retry};
use crate::stored_message::{first_message, last_message};

/// Silence of a client after which the server forgets its consumer.
const CONSUMER_LIFE: Duration = Duration::from_secs(30);

/// Period in which a request is sent again.
const PATIENCE: Duration = Duration::from_secs(30);

/// The state of a batch when it was opened.
#[derive(Debug)]
pub(super) struct Found {
    /// The items that had outcomes.
    pub(super) items: Vec<String>,
    /// The last sequence of the stream, before the items were listed.
    pub(super) last_sequence: u64,
    /// `true` if an earlier run has left anything.
    pub(super) is_continued: bool,
}

impl Server {
    /// Returns the last sequence of the stream of outcomes.
    pub(super) async fn last_outcome(&self) -> Result<u64, ClusterError> {
        let stream = self.names().outcomes_stream();
        patiently("read the state of the outcomes", async || {
            let stream = self.jetstream.get_stream(&stream).await;
            stream.map(|stream| stream.cached_info().state.last_sequence).map_err(|e| chain(&e))
        })
        .await
    }

    /// Looks which items of a batch have outcomes.
    pub(super) async fn find(&self, batch: &Origin) -> Result<Found, ClusterError> {
        let last_sequence = self.last_outcome().await?;
        let filter = self.names().outcomes_of(batch);
        let prefix = filter.trim_end_matches('>').to_owned();
        let outcomes = self.subjects(&self.names().outcomes_stream(), &filter).await?;
        let waiting = self.names().waiting_of(batch);
        let waiting = self.subjects(&self.names().tasks_stream(), &waiting).await?;
        let is_continued = !outcomes.is_empty() || !waiting.is_empty();
        let items = outcomes
            .iter()
            .filter_map(|subject| subject.strip_prefix(&prefix))
            .map(str::to_owned)
            .collect();
        Ok(Found { items, last_sequence, is_continued })
    }

    async fn subjects(&self, stream: &str, filter: &str) -> Result<Vec<String>, ClusterError> {
        patiently("list the items of a batch", async || {
            let stream = self.stream(stream).await?;
            let found = stream.info_with_subjects(filter).await.map_err(|error| chain(&error))?;
            found.map_ok(|(subject, _)| subject).try_collect().await.map_err(|error| chain(&error))
        })
        .await
    }

    /// Returns the message of an outcome or of a manifest, if there is one.
    ///
    /// Any server answers, but only the leader of the stream knows that there is none: the others
    /// may not have heard of the last messages.
    pub(super) async fn outcome(&self, subject: &str) -> Result<Option<Bytes>, ClusterError> {
        let stream = self.names().outcomes_stream();
        patiently("read an outcome", async || {
            let stream = self.stream(&stream).await?;
            match stream.direct_get_last_for_subject(subject).await {
                Ok(message) => Ok(Some(message.payload)),
                Err(error) if error.kind() == DirectGetErrorKind::NotFound => {
                    let last = last_message(&stream, subject).await?;
                    Ok(last.map(|message| message.payload))
                }
                Err(error) => Err(chain(&error)),
            }
        })
        .await
    }

    /// Creates a consumer that delivers the outcomes of an origin from a sequence on.
    pub(super) async fn follow(
        &self,
        origin: &Origin,
        from: u64,
        deliver_subject: String,
    ) -> Result<(), ClusterError> {
        let config = push::Config {
            deliver_subject,
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: from },
            ack_policy: AckPolicy::None,
            filter_subject: self.names().outcomes_of(origin),
            flow_control: true,
            idle_heartbeat: HEARTBEAT,
            num_replicas: 1,
            memory_storage: true,
            inactive_threshold: CONSUMER_LIFE,
            ..push::Config::default()
        };
        let stream = self.names().outcomes_stream();
        let created: Result<PushConsumer, _> =
            self.jetstream.create_consumer_on_stream(config, stream).await;
        created.map(drop).map_err(|error| ClusterError::server("follow the outcomes", error))
    }

    /// Removes the outcomes of an origin, all or those before a sequence. Returns `false` if these
    /// are not worth it, with `is_worth_it` of the number of outcomes in the stream.
    pub(super) async fn purge_outcomes(
        &self,
        origin: &Origin,
        before: Option<u64>,
        is_worth_it: impl FnOnce(u64) -> bool,
    ) -> Result<bool, String> {
        let stream = self.names().outcomes_stream();
        let stream = self.jetstream.get_stream(stream).await.map_err(|e| chain(&e))?;
        if !is_worth_it(stream.cached_info().state.messages) {
            return Ok(false);
        }
        let purge = stream.purge().filter(self.names().outcomes_of(origin));
        let purged = match before {
            Some(sequence) => purge.sequence(sequence).await,
            None => purge.await,
        };
        purged.map(|_| true).map_err(|error| chain(&error))
    }

    /// Creates the consumer of a lane, and tells the nodes.
    pub(super) async fn open_lane(&self, lane: &Lane) -> Result<(), ClusterError> {
        self.settings.ensure_lane(&self.jetstream, lane).await?;
        let client = self.jetstream.client();
        let announced = client.publish(self.names().lanes(), lane.consumer().into()).await;
        announced.map_err(|error| ClusterError::server("announce a lane", error))
    }

    /// Asks the nodes to drop a task.
    pub(super) async fn broadcast(&self, key: TaskKey, kill: bool) -> Result<(), ClusterError> {
        let message = CancelMessage { key, kill }.to_bytes();
        let message =
            message.map_err(|error| ClusterError::server("encode a cancellation", error))?;
        let sent = self.jetstream.client().publish(self.names().cancel(), message).await;
        sent.map_err(|error| ClusterError::server("publish a cancellation", error))
    }

    /// Deletes a task from the queue. It does no harm if the task is gone.
    pub(super) async fn remove(
        &self,
        key: &TaskKey,
        lane: &Lane,
        sequence: Option<u64>,
    ) -> Result<(), String> {
        let stream = self.stream(&self.names().tasks_stream()).await?;
        if key.origin.is_batch() {
            // No other task has this subject. A purge would be one request, but after it, servers
            // of version 2.9 have forgotten what nodes hold of the lane, and skip what waits.
            let subject = self.names().task(lane, key);
            while let Some(message) = first_message(&stream, &subject, 1).await? {
                stream.delete_message(message.sequence).await.map_err(|error| chain(&error))?;
            }
            return Ok(());
        }
        let Some(sequence) = sequence else { return Ok(()) };
        // A server that lost its disk's cache may have given the sequence to another task.
        let Ok(message) = stream.get_raw_message(sequence).await else { return Ok(()) };
        let is_ours =
            message.headers.get(NATS_MESSAGE_ID).is_some_and(|id| id.as_str() == message_id(key));
        if is_ours {
            stream.delete_message(sequence).await.map_err(|error| chain(&error))?;
        }
        Ok(())
    }
}

/// Sends a request until it succeeds: without a leader, and while the link is down, all fail.
pub(super) async fn patiently<T>(
    operation: &'static str,
    attempt: impl AsyncFn() -> Result<T, String>,
) -> Result<T, ClusterError> {
    retry(operation, PATIENCE, async || attempt().await.map_err(Retry::Later)).await
}
