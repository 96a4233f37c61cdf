//! The server as the jobs of clients and nodes use it.

use async_nats::Client;
use async_nats::jetstream::context::PublishError;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{self, Context};
use brigade_codec::chain;

use crate::error::ClusterError;
use crate::names::Names;
use crate::payload::Payloads;
use crate::publisher::Publication;
use crate::setup::QueueSettings;
use crate::stored_message::last_message;

/// The streams and the object store of a queue. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) jetstream: Context,
    pub(crate) settings: QueueSettings,
    pub(crate) payloads: Payloads,
}

impl Server {
    /// Creates what is missing, and opens the queue.
    pub(crate) async fn open(
        client: Client,
        settings: QueueSettings,
    ) -> Result<Self, ClusterError> {
        let jetstream = jetstream::new(client);
        let payloads = settings.ensure(&jetstream).await?;
        Ok(Self { jetstream, settings, payloads })
    }

    pub(crate) fn names(&self) -> &Names {
        &self.settings.names
    }

    /// Returns a stream, which may not exist.
    pub(crate) async fn stream(&self, name: &str) -> Result<Stream<()>, String> {
        self.jetstream.get_stream_no_info(name).await.map_err(|error| chain(&error))
    }

    /// Returns the last message on a subject of a stream, as its leader knows it.
    pub(crate) async fn last(
        &self,
        stream: &str,
        subject: &str,
    ) -> Result<Option<StreamMessage>, String> {
        last_message(&self.stream(stream).await?, subject).await
    }

    /// Publishes a message, and waits for the answer of its stream.
    pub(crate) async fn publish(&self, message: Publication) -> Result<PublishAck, PublishError> {
        let Publication { subject, headers, payload } = message;
        self.jetstream.publish_with_headers(subject, headers, payload).await?.await
    }
}
