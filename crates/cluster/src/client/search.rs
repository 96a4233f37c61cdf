//! Searches for a task that has waited long for its outcome.
//!
//! The leaders of the streams answer, because their followers may not have heard of the last
//! messages. An outcome is recorded before its task leaves the queue. So it is looked for first,
//! and again if the task is not in the queue.

use std::time::Duration;

use async_nats::jetstream::message::StreamMessage;
use brigade_codec::chain;
use bytes::Bytes;

use crate::names::{Lane, TaskKey};
use crate::server::Server;
use crate::setup::existing;
use crate::stored_message::{first_message, found};
use crate::task_name::{key_of, unreadable};

/// Messages of this client that a search passes over to find one that has another sequence now.
const PASSED_OVER: u32 = 1024;

/// The task that is searched for.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchedTask<'a> {
    pub(super) key: &'a TaskKey,
    pub(super) lane: &'a Lane,
    /// The sequence of its message, if that is known.
    pub(super) sequence: Option<u64>,
    /// `false` if its publication has no answer.
    pub(super) is_published: bool,
    /// Time since the submission.
    pub(super) age: Duration,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Located {
    /// The message of its outcome.
    Outcome(Bytes),
    /// It is in the queue, or on its way there.
    Queue,
    /// Neither the task nor an outcome is on the server, for this reason.
    Nowhere(String),
}

impl Server {
    /// Searches for a task.
    ///
    /// # Errors
    /// If the server does not answer: it may be anywhere.
    pub(super) async fn search(&self, wanted: SearchedTask<'_>) -> Result<Located, String> {
        let reason = match self.locate(wanted).await {
            Err(reason) => reason,
            located => return located,
        };
        // It may have failed because a stream was deleted.
        let names = self.names();
        for stream in [names.outcomes_stream(), names.tasks_stream(), names.history_stream()] {
            match existing(&self.jetstream, &stream).await {
                Ok(Some(_)) => {}
                Ok(None) => {
                    return Ok(Located::Nowhere(format!(
                        "the stream {stream} does not exist anymore; connect again, which creates \
                         it, and submit the task again"
                    )));
                }
                Err(_) => break,
            }
        }
        Err(reason)
    }

    async fn locate(&self, wanted: SearchedTask<'_>) -> Result<Located, String> {
        let names = self.names();
        let (outcomes, outcome) = (names.outcomes_stream(), names.outcome(wanted.key));
        if let Some(message) = self.last(&outcomes, &outcome).await? {
            return Ok(Located::Outcome(message.payload));
        }
        let is_queued = self.is_queued(wanted).await?;
        // Without an answer to its publication, the task may arrive at any time.
        if is_queued || !wanted.is_published {
            return Ok(Located::Queue);
        }
        if let Some(message) = self.last(&outcomes, &outcome).await? {
            return Ok(Located::Outcome(message.payload));
        }
        self.reason(wanted).await.map(Located::Nowhere)
    }

    /// Returns `true` if a task is in the queue.
    async fn is_queued(&self, wanted: SearchedTask<'_>) -> Result<bool, String> {
        let SearchedTask { key, lane, sequence, .. } = wanted;
        let (name, subject) = (self.names().tasks_stream(), self.names().task(lane, key));
        let Some(sequence) = sequence.filter(|_| !key.origin.is_batch()) else {
            // An item of a batch has a subject of its own. Otherwise, there is no answer yet, and
            // what matters is that the stream exists.
            return Ok(self.last(&name, &subject).await?.is_some());
        };
        let stream = self.stream(&name).await?;
        let is_it = |message: &StreamMessage| {
            key_of(Some(&message.headers), &message.subject).as_ref() == Some(key)
        };
        if found(stream.get_raw_message(sequence).await)?.as_ref().is_some_and(is_it) {
            return Ok(true);
        }
        // A node may have published it again; see `node::sweep`.
        let mut next = sequence;
        for _ in 0..PASSED_OVER {
            let first = first_message(&stream, &subject, next).await?;
            let Some(message) = first else { return Ok(false) };
            if is_it(&message) {
                return Ok(true);
            }
            next = message.sequence + 1;
        }
        // It may be behind these.
        Ok(true)
    }

    /// Returns the most likely reason why a task has no outcome and is not in the queue.
    async fn reason(&self, wanted: SearchedTask<'_>) -> Result<String, String> {
        let names = self.names();
        let history = names.history_stream();
        let unread = wanted.sequence.map(unreadable);
        for key in [Some(wanted.key), unread.as_ref()].into_iter().flatten() {
            if self.last(&history, &names.dead(key)).await?.is_some() {
                return Ok(format!(
                    "it is the dead letter {key}, which `brigade cluster dead` shows; is a node of \
                     another version of Brigade?"
                ));
            }
        }
        let outcomes = names.outcomes_stream();
        let stream = self.jetstream.get_stream(&outcomes).await;
        let life = stream.map_err(|error| chain(&error))?;
        let (life, age) = (life.cached_info().config.max_age, wanted.age);
        Ok(if !life.is_zero() && age > life {
            format!(
                "its outcome has expired, because this queue keeps outcomes for {life:?} and the \
                 task was submitted {age:.1?} ago; set a longer `outcome_life`, or submit the \
                 task again"
            )
        } else {
            "somebody has removed its message or its outcome, or the server has lost them in a \
             crash; submit the task again"
                .to_owned()
        })
    }
}
