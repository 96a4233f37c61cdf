//! Large payloads: items of more than 256 KiB travel through the object store.
//!
//! Arguments are removed by whoever recorded the outcome, results by the client that took them, and
//! everything by its age in the end.

mod leader;

use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::object_store::{DeleteErrorKind, ObjectStore};
use async_nats::jetstream::stream::Stream;
use brigade_codec::chain;
use brigade_sys::random;
use tokio::io::AsyncReadExt;

use crate::error::ClusterError;
use crate::message::{Body, Items, StoredBody};
use crate::names::TaskKey;

/// The slowest transfer that is waited for, plus the time of an election of the server.
const MIN_BYTES_PER_SECOND: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum number of bytes of an object that is read: more than the memory that clients and nodes
/// have for the items of one chunk.
const MAX: u64 = 1 << 36;

/// Number of attempts to transfer an object, each with the patience above.
const ATTEMPTS: u32 = 3;

/// The pause between two attempts to read an object.
const PAUSE: Duration = Duration::from_millis(200);

const NO_ANSWER: &str = "the server did not answer in time";

/// The object store of a queue.
#[derive(Clone)]
pub(crate) struct Payloads {
    bucket: ObjectStore,
    /// The name of the bucket.
    name: String,
    /// The stream behind the bucket.
    stream: Stream<()>,
}

/// Items could not be read from the object store.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum PayloadError {
    /// The object is not there: it was removed with its task, or it was too old.
    #[error("the payload {0} is gone: it was removed, or it was older than payloads are kept")]
    Gone(String),
    /// The server did not deliver it.
    #[error("cannot read the payload {object}: {reason}")]
    Unreachable {
        /// Name of the object.
        object: String,
        /// Description of the failure.
        reason: String,
    },
}

impl Payloads {
    /// Returns the object store with the given name, which exists.
    pub(crate) async fn of(
        jetstream: &Context,
        name: String,
        bucket: ObjectStore,
    ) -> Result<Self, ClusterError> {
        let stream = jetstream.get_stream_no_info(format!("OBJ_{name}")).await;
        let stream = stream.map_err(|error| ClusterError::server("open a stream", error))?;
        Ok(Self { bucket, name, stream })
    }

    /// Returns the body of a message with these items. Stores them first if they are large.
    pub(crate) async fn put(&self, key: &TaskKey, items: Items) -> Result<Body, ClusterError> {
        if !items.is_large() {
            return Ok(Body::Inline(items));
        }
        let length = items.as_bytes().len() as u64;
        let mut reason = String::new();
        for _ in 0..ATTEMPTS {
            // A new name for each attempt, so that two of them do not mix their parts.
            let unique = random::bytes::<8>().map(u64::from_le_bytes).unwrap_or_default();
            let object = format!("{}.{}.{unique:016x}", key.origin, key.item);
            let mut reader: &[u8] = items.as_bytes();
            let put = self.bucket.put(object.as_str(), &mut reader);
            match tokio::time::timeout(patience(length), put).await {
                Ok(Ok(_)) => return Ok(Body::Stored(StoredBody { object, length })),
                Ok(Err(error)) => reason = chain(&error),
                Err(_) => NO_ANSWER.clone_into(&mut reason),
            }
        }
        Err(ClusterError::server("store a payload", reason))
    }

    /// Returns the items of a message.
    pub(crate) async fn get(&self, body: &Body) -> Result<Items, PayloadError> {
        let stored = match body {
            Body::Inline(items) => return Ok(items.clone()),
            Body::Stored(stored) => stored,
        };
        let failed = |reason| PayloadError::Unreachable { object: stored.object.clone(), reason };
        // The length is what the message says.
        if stored.length > MAX {
            return Err(failed(format!("{} bytes exceed the limit of {MAX}", stored.length)));
        }
        let patience = patience(stored.length);
        let reason = match tokio::time::timeout(patience, self.read(stored)).await {
            Ok(Ok(items)) => return Ok(items),
            Ok(Err(reason)) => reason,
            Err(_) => NO_ANSWER.to_owned(),
        };
        tracing::debug!(object = stored.object, reason, "reading from the leader instead");
        let mut attempts = ATTEMPTS;
        loop {
            attempts -= 1;
            let read = tokio::time::timeout(patience, self.read_from_leader(stored)).await;
            match read.unwrap_or_else(|_| Err(failed(NO_ANSWER.to_owned()))) {
                Err(_) if attempts > 0 => tokio::time::sleep(PAUSE).await,
                read => return read,
            }
        }
    }

    /// Reads an object from any server, which may not have heard of all of it.
    async fn read(&self, stored: &StoredBody) -> Result<Items, String> {
        let object = self.bucket.get(&stored.object).await.map_err(|error| chain(&error))?;
        let mut bytes = Vec::new();
        let mut bounded = object.take(stored.length + 1);
        bounded.read_to_end(&mut bytes).await.map_err(|error| chain(&error))?;
        if bytes.len() as u64 != stored.length {
            return Err(format!("it has {} bytes of {}", bytes.len(), stored.length));
        }
        Ok(Items::from_bytes(bytes.into()))
    }

    /// Removes the object of a message, if it has one. A failure is left to the object's age.
    pub(crate) async fn remove(&self, body: &Body) {
        let Body::Stored(StoredBody { object, .. }) = body else { return };
        match tokio::time::timeout(PATIENCE, self.bucket.delete(object)).await {
            Ok(Err(error)) if error.kind() != DeleteErrorKind::NotFound => {
                tracing::debug!(object, error = chain(&error), "cannot remove a payload");
            }
            Ok(_) => {}
            Err(_) => tracing::debug!(object, "the server did not answer to a removal in time"),
        }
    }
}

/// Returns the time that a transfer may take.
fn patience(length: u64) -> Duration {
    PATIENCE + Duration::from_secs(length / MIN_BYTES_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use brigade_testkit::NatsServer;

    use super::*;
    use crate::names::{Names, Queue};
    use crate::setup::QueueSettings;
    use crate::tests::stale_server::{Consumers, StaleServer};

    #[tokio::test]
    async fn a_payload_is_found_that_a_follower_has_not_heard_of() {
        if !NatsServer::installed() {
            return;
        }
        let server = NatsServer::start();
        let jetstream = StaleServer::start(&server.url(), Consumers::Done { delivered: 0 }).await;
        let settings = QueueSettings::new(Names::new(Queue::default()));
        let payloads = settings.ensure(&jetstream).await.unwrap();
        let key = "b/item".parse().unwrap();
        let items = Items::from_bytes((0..300_000_u32).flat_map(u32::to_le_bytes).collect());
        let body = payloads.put(&key, items.clone()).await.unwrap();
        assert!(matches!(body, Body::Stored(_)), "{body:?}");
        assert_eq!(payloads.get(&body).await.unwrap(), items);
        let Body::Stored(stored) = body else { return };
        let endless = StoredBody { length: u64::MAX, ..stored.clone() };
        let endless = payloads.get(&Body::Stored(endless)).await.unwrap_err();
        assert!(endless.to_string().contains("exceed the limit"), "{endless}");
        let other = StoredBody { object: "b.other.0".to_owned(), ..stored };
        let missing = payloads.get(&Body::Stored(other)).await;
        assert!(matches!(missing, Err(PayloadError::Gone(_))), "{missing:?}");
    }
}
