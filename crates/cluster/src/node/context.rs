//! The parts of a node that its background jobs share.

use std::time::Duration;

use async_nats::jetstream::Context as JetStream;
use async_nats::jetstream::stream::Stream;

use crate::error::ClusterError;
use crate::message::History;
use crate::names::{Names, TaskKey};
use crate::payload::Payloads;
use crate::setup::QueueSettings;
use crate::stored_message::last_message;

/// The pause before a request is sent again.
const PAUSE: Duration = Duration::from_millis(250);

/// The state of a task in the streams.
#[derive(Debug, Default)]
pub(super) struct Examined {
    /// `true` if it has an outcome.
    pub(super) is_done: bool,
    pub(super) history: History,
    /// Sequence of the history in its stream; 0 if there is none.
    pub(super) revision: u64,
}

/// The streams of a queue.
#[derive(Clone)]
pub(super) struct QueueContext {
    pub(super) jetstream: JetStream,
    pub(super) settings: QueueSettings,
    pub(super) payloads: Payloads,
    outcomes: Stream<()>,
    history: Stream<()>,
}

impl QueueContext {
    /// Creates everything that is missing.
    pub(super) async fn open(
        jetstream: JetStream,
        settings: QueueSettings,
    ) -> Result<Self, ClusterError> {
        let payloads = settings.ensure(&jetstream).await?;
        let names = &settings.names;
        let open = async |name: String| {
            let stream = jetstream.get_stream_no_info(name).await;
            stream.map_err(|error| ClusterError::server("open a stream", error))
        };
        let outcomes = open(names.outcomes_stream()).await?;
        let history = open(names.history_stream()).await?;
        Ok(Self { jetstream, settings, payloads, outcomes, history })
    }

    pub(super) fn names(&self) -> &Names {
        &self.settings.names
    }

    /// Looks for the outcome and the history of a task. Asks until the server answers.
    pub(super) async fn examine(&self, key: &TaskKey) -> Examined {
        loop {
            match self.try_examine(key).await {
                Ok(examined) => return examined,
                Err(reason) => {
                    tracing::debug!(%key, reason, "cannot look for an outcome; trying again");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn try_examine(&self, key: &TaskKey) -> Result<Examined, String> {
        if self.has_outcome(key).await? {
            return Ok(Examined { is_done: true, ..Examined::default() });
        }
        let message = last_message(&self.history, &self.names().returned(key)).await?;
        let Some(message) = message else { return Ok(Examined::default()) };
        // A history of another version is as good as none: the limit of deaths comes sooner.
        let history = History::from_bytes(&message.payload).unwrap_or_default();
        Ok(Examined { is_done: false, history, revision: message.sequence })
    }

    /// Returns whether there is a dead letter of a task.
    pub(super) async fn has_dead_letter(&self, key: &TaskKey) -> Result<bool, String> {
        Ok(last_message(&self.history, &self.names().dead(key)).await?.is_some())
    }

    /// Returns whether a task has an outcome.
    pub(super) async fn has_outcome(&self, key: &TaskKey) -> Result<bool, String> {
        Ok(last_message(&self.outcomes, &self.names().outcome(key)).await?.is_some())
    }
}
