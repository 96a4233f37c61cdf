//! Messages that the server sends in answer to requests for tasks.

use async_nats::{Message, StatusCode, Subject};
use brigade_task::Retry;
use bytes::Bytes;

use super::machine::{Facts, PullId};
use crate::message::{DeliveryId, MessageError, TaskMessage};
use crate::names::{Lane, TaskKey};
use crate::task_name::{key_of, types_in, unreadable};

/// A task that was delivered.
#[derive(Debug)]
pub(super) struct Delivered {
    pub(super) lane: Lane,
    pub(super) id: DeliveryId,
    /// The subject by which it is acknowledged.
    pub(super) reply: Subject,
    pub(super) payload: Bytes,
    pub(super) task: Result<TaskMessage, MessageError>,
    /// The hash of the types that the client gives the function.
    pub(super) types: u64,
    /// The key of a task whose message cannot be read.
    pub(super) fallback: Option<TaskKey>,
}

/// A message of the server.
#[derive(Debug)]
pub(super) enum FromServer {
    Delivered(Box<Delivered>),
    Heartbeat(PullId),
    Ended { pull: PullId, has_failed: bool },
    Unknown,
}

impl FromServer {
    /// Reads a message. `inbox` is the prefix of the subjects of requests.
    pub(super) fn read(message: Message, inbox: &str) -> Self {
        if let Some(status) = message.status {
            return status_of(status, &message.subject, inbox);
        }
        let Some(reply) = message.reply else { return Self::Unknown };
        let Some((lane, id)) = parse_reply(&reply) else { return Self::Unknown };
        let task = TaskMessage::from_bytes(&message.payload);
        let fallback = task.is_err().then(|| {
            let key = key_of(message.headers.as_ref(), &message.subject);
            key.unwrap_or_else(|| unreadable(id.message))
        });
        let types = types_in(message.headers.as_ref());
        let payload = message.payload;
        let delivered = Delivered { lane, id, reply, payload, task, types, fallback };
        Self::Delivered(Box::new(delivered))
    }
}

impl Delivered {
    /// Returns the properties that the machine decides by.
    pub(super) fn facts(&self, is_known: impl FnOnce(&str) -> bool) -> Facts {
        match &self.task {
            Ok(TaskMessage { head, .. }) => Facts {
                is_readable: true,
                is_known: is_known(&head.name),
                retry: head.retry,
                max_deaths: head.max_deaths.into(),
                may_be_done: head.may_be_done,
            },
            // Another version of this program may understand it.
            Err(_) => Facts {
                is_readable: false,
                is_known: false,
                retry: Retry::of(0),
                max_deaths: u64::MAX,
                may_be_done: false,
            },
        }
    }

    pub(super) fn key(&self) -> Option<TaskKey> {
        self.task.as_ref().ok().map(|task| task.head.key.clone()).or_else(|| self.fallback.clone())
    }
}

/// Reads `$JS.ACK.<stream>.<consumer>.<delivered>.<stream sequence>.…`, which may have a domain and
/// an account behind `ACK`.
fn parse_reply(reply: &str) -> Option<(Lane, DeliveryId)> {
    let mut tokens = reply.strip_prefix("$JS.ACK.")?.split('.');
    if tokens.clone().count() >= 9 {
        tokens.nth(1)?;
    }
    let lane = Lane::of_consumer(tokens.nth(1)?)?;
    let number = tokens.next()?.parse().ok()?;
    let message = tokens.next()?.parse().ok()?;
    Some((lane, DeliveryId { message, number }))
}

fn status_of(status: StatusCode, subject: &Subject, inbox: &str) -> FromServer {
    let pull = subject.as_str().strip_prefix(inbox).and_then(|number| number.parse().ok());
    let Some(pull) = pull.map(PullId) else { return FromServer::Unknown };
    match status {
        StatusCode::IDLE_HEARTBEAT => FromServer::Heartbeat(pull),
        // Nothing is there, or nothing came in time.
        StatusCode::NOT_FOUND | StatusCode::TIMEOUT => {
            FromServer::Ended { pull, has_failed: false }
        }
        _ => FromServer::Ended { pull, has_failed: true },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Priority;
    use crate::requirements::Class;

    #[test]
    fn both_forms_of_acknowledgments_are_read() {
        for reply in [
            "$JS.ACK.BRIGADE_q_TASKS.any_h.3.17.5.1700000000.2",
            "$JS.ACK.hub.HASH.BRIGADE_q_TASKS.any_h.3.17.5.1700000000.2.random",
        ] {
            let (lane, delivery) = parse_reply(reply).unwrap();
            assert_eq!(lane, Lane { priority: Priority::High, class: Class::default() });
            assert_eq!(delivery, DeliveryId { message: 17, number: 3 });
        }
        for reply in ["", "$JS.ACK.", "$JS.ACK.S.C.x.1.1.1.1", "elsewhere.1"] {
            assert!(parse_reply(reply).is_none(), "{reply}");
        }
    }
}
