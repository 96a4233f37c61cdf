//! Names of streams, subjects and consumers, parsed from the texts that users give.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::requirements::Class;

/// Maximum length of a name that is one token of a subject.
const TOKEN_LIMIT: usize = 64;

/// The mark of clients among origins. No user can give a batch such a name.
const CLIENT_MARK: char = '~';

/// The token of a batch's manifest among the outcomes of its items. No item can have it.
const MANIFEST: &str = "~manifest";

/// The mark of chunks among the items of a batch. No user can give an item such an id.
const CHUNK_MARK: char = '~';

/// A text cannot be used as a name.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` cannot be used as {what}: allowed are 1 to {TOKEN_LIMIT} letters, digits, `-` and `_`"
)]
#[non_exhaustive]
pub struct NameError {
    /// The kind of name.
    pub what: &'static str,
    /// The text.
    pub text: String,
}

/// Defines a name that is one token of a subject.
macro_rules! token {
    ($(#[$attribute:meta])* $visible:vis $name:ident, $what:literal, $is_valid:ident) => {
        $(#[$attribute])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        $visible struct $name(Arc<str>);

        impl $name {
            /// Returns the name as text.
            $visible fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                crate::names::checked($what, text, $is_valid).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.as_str().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "{:?}", &*self.0)
            }
        }
    };
}

pub(crate) use token;

token! {
    /// The name of a queue: clients and nodes with the same one meet.
    pub Queue, "the name of a queue", is_token
}

token! {
    /// The name of a batch, or the id of a client for tasks outside of batches: the owner of the
    /// ids of items.
    pub Origin, "the name of a batch", is_origin
}

token! {
    /// The id of a task within its batch or client.
    pub ItemId, "the id of an item", is_item
}

/// Returns a text that is valid as a name.
pub(crate) fn checked(
    what: &'static str,
    text: &str,
    is_valid: impl FnOnce(&str) -> bool,
) -> Result<Arc<str>, NameError> {
    let name = is_valid(text).then(|| text.into());
    name.ok_or_else(|| NameError { what, text: text.to_owned() })
}

fn is_token(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=TOKEN_LIMIT).contains(&text.len()) && text.bytes().all(allowed)
}

fn is_origin(text: &str) -> bool {
    is_token(text.strip_prefix(CLIENT_MARK).unwrap_or(text))
}

fn is_item(text: &str) -> bool {
    let number = text.strip_prefix(CHUNK_MARK);
    number.map_or_else(|| is_token(text), |number| number.parse::<u64>().is_ok())
}

impl Default for Queue {
    fn default() -> Self {
        Self("default".into())
    }
}

impl Origin {
    /// Parses the name of a batch, which is not the id of a client.
    ///
    /// # Errors
    /// If the text has characters that are not allowed.
    pub fn batch(name: &str) -> Result<Self, NameError> {
        checked("the name of a batch", name, is_token).map(Self)
    }

    /// Returns the origin of a client's tasks outside of batches.
    ///
    /// # Errors
    /// If the text has characters that are not allowed.
    pub(crate) fn client(id: &str) -> Result<Self, NameError> {
        format!("{CLIENT_MARK}{id}").parse()
    }

    /// Returns the origin of tasks whose messages say nothing about theirs.
    pub(crate) fn unreadable() -> Self {
        Self(format!("{CLIENT_MARK}unreadable").into())
    }

    /// Returns `true` if this is a named batch, whose items clients submit again after a crash.
    pub fn is_batch(&self) -> bool {
        !self.0.starts_with(CLIENT_MARK)
    }
}

impl ItemId {
    /// Parses the id that a user gives an item of a batch.
    ///
    /// # Errors
    /// If the text has characters that are not allowed.
    pub fn named(text: &str) -> Result<Self, NameError> {
        checked("the id of an item", text, is_token).map(Self)
    }

    /// Returns the id of the item with a number.
    pub(crate) fn number(number: u64) -> Self {
        Self(number.to_string().into())
    }

    /// Returns the id of a chunk of a batch's map, counted from 0.
    pub(crate) fn chunk(index: u64) -> Self {
        Self(format!("{CHUNK_MARK}{index}").into())
    }
}

/// The urgency of a task. Nodes with a free slot take the most urgent task first.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[non_exhaustive]
pub enum Priority {
    /// Before all others.
    High,
    /// The default.
    #[default]
    Normal,
    /// Only while nothing else waits.
    Low,
}

impl Priority {
    /// All priorities, the most urgent first.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    /// Returns the token of this priority in subjects.
    pub(crate) fn token(self) -> &'static str {
        match self {
            Self::High => "h",
            Self::Normal => "n",
            Self::Low => "l",
        }
    }
}

/// A lane of the queue: the tasks with the same requirements and the same priority. Each has a
/// consumer of its own. Lanes are ordered by urgency.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Lane {
    pub(crate) priority: Priority,
    pub(crate) class: Class,
}

impl Lane {
    /// Returns the name of the lane's consumer.
    pub(crate) fn consumer(&self) -> String {
        format!("{}_{}", self.class, self.priority.token())
    }

    /// Finds the lane of a consumer, or `None` if the consumer is not one of ours.
    pub(crate) fn of_consumer(name: &str) -> Option<Self> {
        let (class, token) = name.rsplit_once('_')?;
        let priority = Priority::ALL.into_iter().find(|priority| priority.token() == token)?;
        Some(Self { priority, class: class.parse().ok()? })
    }
}

/// A task among all tasks of a queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskKey {
    /// The batch or client that submitted it.
    pub origin: Origin,
    /// Its id there.
    pub item: ItemId,
}

impl FromStr for TaskKey {
    type Err = NameError;

    /// Parses the form that `Display` writes.
    fn from_str(text: &str) -> Result<Self, NameError> {
        let error = || NameError {
            what: "a batch and an item, with `/` between them",
            text: text.to_owned(),
        };
        let (origin, item) = text.split_once('/').ok_or_else(error)?;
        Ok(Self { origin: origin.parse()?, item: item.parse()? })
    }
}

impl fmt::Display for TaskKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.origin, self.item)
    }
}

/// The names of everything that belongs to a queue.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    queue: Queue,
}

impl Names {
    pub(crate) fn new(queue: Queue) -> Self {
        Self { queue }
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Returns the stream of the tasks that are not done.
    pub(crate) fn tasks_stream(&self) -> String {
        format!("BRIGADE_{}_TASKS", self.queue)
    }

    /// Returns the stream of outcomes.
    pub(crate) fn outcomes_stream(&self) -> String {
        format!("BRIGADE_{}_OUTCOMES", self.queue)
    }

    /// Returns the stream of hand-backs, deaths and dead letters.
    pub(crate) fn history_stream(&self) -> String {
        format!("BRIGADE_{}_HISTORY", self.queue)
    }

    /// Returns the bucket of the object store for large payloads.
    pub(crate) fn payloads_bucket(&self) -> String {
        format!("brigade_{}_payloads", self.queue)
    }

    /// Returns the filter of all messages of a kind: `task`, `outcome`, `returned` or `dead`.
    pub(crate) fn all(&self, kind: &str) -> String {
        format!("brigade.{}.{kind}.>", self.queue)
    }

    /// Returns the subject of a task. Only items of named batches have one of their own.
    pub(crate) fn task(&self, lane: &Lane, task: &TaskKey) -> String {
        let (queue, class, priority) = (&self.queue, &lane.class, lane.priority.token());
        let TaskKey { origin, item } = task;
        if origin.is_batch() {
            format!("brigade.{queue}.task.{class}.{priority}.{origin}.{item}")
        } else {
            format!("brigade.{queue}.task.{class}.{priority}.{origin}")
        }
    }

    /// Returns the filter of all items of a batch that are in the queue.
    pub(crate) fn waiting_of(&self, batch: &Origin) -> String {
        format!("brigade.{}.task.*.*.{batch}.>", self.queue)
    }

    /// Returns the filter of a lane's consumer.
    pub(crate) fn lane_filter(&self, lane: &Lane) -> String {
        format!("brigade.{}.task.{}.{}.>", self.queue, lane.class, lane.priority.token())
    }

    pub(crate) fn outcome(&self, task: &TaskKey) -> String {
        format!("brigade.{}.outcome.{}.{}", self.queue, task.origin, task.item)
    }

    /// Returns the filter of all outcomes of a batch or client.
    pub(crate) fn outcomes_of(&self, origin: &Origin) -> String {
        format!("brigade.{}.outcome.{origin}.>", self.queue)
    }

    pub(crate) fn manifest(&self, batch: &Origin) -> String {
        format!("brigade.{}.outcome.{batch}.{MANIFEST}", self.queue)
    }

    pub(crate) fn returned(&self, task: &TaskKey) -> String {
        format!("brigade.{}.returned.{}.{}", self.queue, task.origin, task.item)
    }

    pub(crate) fn dead(&self, task: &TaskKey) -> String {
        format!("brigade.{}.dead.{}.{}", self.queue, task.origin, task.item)
    }

    /// Returns the subject of requests to end tasks, which is not stored.
    pub(crate) fn cancel(&self) -> String {
        format!("brigade.{}.cancel", self.queue)
    }

    /// Returns the beginning of the subjects on which nodes announce that they have begun tasks,
    /// which are not stored.
    pub(crate) fn starts(&self) -> String {
        format!("brigade.{}.started.", self.queue)
    }

    /// Returns the subject of those of an origin.
    pub(crate) fn starts_of(&self, origin: &Origin) -> String {
        format!("{}{origin}", self.starts())
    }

    /// Returns the subject that announces new lanes, which is not stored.
    pub(crate) fn lanes(&self) -> String {
        format!("brigade.{}.classes", self.queue)
    }

    /// Returns the subject on which servers announce new leaders of the lanes' consumers. It ends
    /// with the name of the consumer.
    pub(crate) fn elections(&self) -> String {
        format!("$JS.EVENT.ADVISORY.CONSUMER.LEADER_ELECTED.{}.*", self.tasks_stream())
    }

    /// Returns the subject on which nodes answer with their status, which is not stored.
    pub(crate) fn status(&self) -> String {
        format!("brigade.{}.status", self.queue)
    }
}

brigade_sys::debug_as_text!(NameError);

#[cfg(test)]
mod tests;
