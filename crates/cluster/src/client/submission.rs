//! A task on its way from a caller to the driver.

use std::sync::Arc;
use std::sync::mpsc::{Sender, SyncSender};
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use brigade_task::{SubmitErrorKind, TaskError};

use super::machine::{Ticket, WhenFull};
use super::record::{self, Record};
use crate::message::{Body, Items, MessageError, TaskHead, TaskMessage};
use crate::names::{Lane, Names, TaskKey};
use crate::publisher::{NOTHING, Publication, only_behind};
use crate::task_name::TYPES_HEADER;

/// A task that is to be submitted.
#[derive(Debug)]
pub(super) struct Submission {
    pub(super) ticket: Ticket,
    pub(super) key: TaskKey,
    pub(super) lane: Lane,
    pub(super) content: Content,
    pub(super) target: OutcomeTarget,
    /// Hashes of the inputs, for tasks of batches.
    pub(super) input_hashes: Vec<u64>,
    pub(super) when_full: WhenFull,
    /// The caller that waits until the queue has taken the task or refused it. The channel has room
    /// for the first answer, which counts.
    pub(super) admission: Option<SyncSender<Admission>>,
}

/// The message of a task.
#[derive(Debug, Clone)]
pub(super) enum Content {
    Ready(Publication),
    /// The items go to the object store first. The number is the hash of the types.
    Large(Box<TaskHead>, u64, Items),
    /// The publisher has it.
    Sent,
}

/// The receiver of the outcome.
#[derive(Debug, Clone)]
pub(super) enum OutcomeTarget {
    Task(Record),
    /// A chunk of a map.
    Chunk {
        outcomes: Sender<ChunkOutcome>,
        index: u64,
        items: u32,
    },
}

/// The index of a chunk; the outcomes of its items and their run time, or the failure of all of
/// them.
pub(super) type ChunkOutcome = (u64, Result<(Items, Duration), TaskError>);

/// The queue's answer to a task, for a caller that waits for it.
pub(super) type Admission = Result<(), SubmitErrorKind>;

impl Submission {
    /// Answers the caller that waits, if there is one. Later answers are ignored.
    pub(super) fn admit(&self, answer: Admission) {
        if let Some(admission) = &self.admission {
            let _ = admission.try_send(answer);
        }
    }
}

impl OutcomeTarget {
    pub(super) fn items(&self) -> u32 {
        match self {
            Self::Task(_) => 1,
            Self::Chunk { items, .. } => *items,
        }
    }

    pub(super) fn label(&self) -> Option<Arc<str>> {
        match self {
            Self::Task(record) => record.label.clone(),
            Self::Chunk { .. } => None,
        }
    }

    /// Ends the task without a recorded outcome, or with one that has no value.
    pub(super) fn fail(&self, error: TaskError) {
        match self {
            Self::Task(record) => record::complete(record, Err(error)),
            Self::Chunk { outcomes, index, .. } => {
                // The map may have been dropped.
                let _ = outcomes.send((*index, Err(error)));
            }
        }
    }
}

impl Content {
    /// Makes the message of a task, if its items fit into it.
    pub(super) fn new(
        names: &Names,
        lane: &Lane,
        (head, types): (TaskHead, u64),
        items: Items,
    ) -> Result<Self, MessageError> {
        if items.is_large() {
            return Ok(Self::Large(Box::new(head), types, items));
        }
        publication(names, lane, (head, types), Body::Inline(items)).map(Self::Ready)
    }
}

/// Returns the headers with which the queue takes a task once, whatever becomes of the answer: an
/// item of a batch is refused while it is in the queue, and another task has an id by which the
/// stream knows it.
pub(super) fn once(key: &TaskKey, id: &str) -> HeaderMap {
    if key.origin.is_batch() {
        return only_behind(NOTHING);
    }
    let mut headers = HeaderMap::new();
    headers.insert(NATS_MESSAGE_ID, id);
    headers
}

/// Returns the publication of a task, which may be sent again.
pub(super) fn publication(
    names: &Names,
    lane: &Lane,
    (head, types): (TaskHead, u64),
    body: Body,
) -> Result<Publication, MessageError> {
    let mut headers = once(&head.key, &message_id(&head.key));
    if types != 0 {
        headers.insert(TYPES_HEADER, format!("{types:x}"));
    }
    let subject = names.task(lane, &head.key).into();
    let payload = TaskMessage { head, body }.to_bytes()?;
    Ok(Publication { subject, headers, payload })
}

/// Returns the id by which the stream knows a task outside of batches.
pub(super) fn message_id(key: &TaskKey) -> String {
    key.to_string()
}
