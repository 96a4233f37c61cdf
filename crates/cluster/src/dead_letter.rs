//! Tasks that were given up.

use std::time::{Duration, SystemTime};

use async_nats::jetstream::message::StreamMessage;
use brigade_wire::codec::Encoded;
use serde::Serialize;

use crate::message::{Body, DeadLetterMessage, Items, Report, TaskMessage};
use crate::names::{Lane, TaskKey};

/// A task that was given up because of the deaths of its workers and nodes. Returned by
/// [`Cluster::dead_letters`](crate::Cluster::dead_letters).
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The task.
    pub key: TaskKey,
    /// Name of the function; empty if the message of the task cannot be read.
    pub function: String,
    /// Label of the task.
    pub label: Option<String>,
    /// Number of items: more than 1 for a chunk of a map.
    pub items: u32,
    /// The encoded arguments of the items. Empty if they are in the object store, or cannot be
    /// read.
    #[serde(skip)]
    pub arguments: Vec<Encoded>,
    /// Time at which the task was given up, by the clock of the server.
    pub when: SystemTime,
    /// Number of deaths of nodes and workers.
    pub deaths: u64,
    /// Name of the node that gave the task up.
    pub node: String,
    /// The last deliveries that nodes have reported. A node that died has not.
    pub history: Vec<Report>,
    #[serde(skip)]
    pub(crate) origin: LetterOrigin,
}

/// The place of a dead letter in its stream, and everything that is needed to submit it again.
#[derive(Debug, Clone)]
pub(crate) struct LetterOrigin {
    pub(crate) sequence: u64,
    pub(crate) lane: Lane,
    /// The task's message.
    pub(crate) message: Vec<u8>,
    /// The object with the arguments, if there is one.
    pub(crate) stored: Option<Body>,
}

impl DeadLetter {
    /// Reads a dead letter, or describes why it cannot be read.
    pub(crate) fn read(message: &StreamMessage) -> Result<Self, String> {
        let letter = DeadLetterMessage::from_bytes(&message.payload);
        let DeadLetterMessage { key, lane, message: bytes, deaths, history, node } =
            letter.map_err(|error| error.to_string())?;
        let task = TaskMessage::from_bytes(&bytes.clone().into()).ok();
        let (stored, arguments) = match task.as_ref().map(|task| &task.body) {
            Some(Body::Inline(items)) => (None, arguments(items.clone())),
            Some(stored @ Body::Stored(_)) => (Some(stored.clone()), Vec::new()),
            None => (None, Vec::new()),
        };
        let (function, label, items) = task.map_or_else(
            || (String::new(), None, 1),
            |task| (task.head.name, task.head.label, task.head.items),
        );
        let nanos = u64::try_from(message.time.unix_timestamp_nanos()).unwrap_or_default();
        let when = SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos);
        let history = history.reports;
        let sequence = message.sequence;
        let origin = LetterOrigin { sequence, lane, message: bytes, stored };
        Ok(Self { key, function, label, items, arguments, when, deaths, node, history, origin })
    }
}

fn arguments(items: Items) -> Vec<Encoded> {
    items.map_while(Result::ok).map(|item| Encoded::new(item.to_vec())).collect()
}
