//! Messages that the server sends in answer to requests for tasks.

use async_nats::{Message, StatusCode, Subject};

use super::held_task::HeldTask;
use super::machine::PullId;
use crate::message::{DeliveryId, History, TaskMessage};
use crate::names::Lane;
use crate::task_name::{key_of, types_in, unreadable};

/// A message of the server.
#[derive(Debug)]
pub(super) enum FromServer {
    Delivered(Box<HeldTask>),
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
        let Some((lane, delivery)) = parse_reply(&reply) else { return Self::Unknown };
        let task = TaskMessage::from_bytes(&message.payload);
        let headers = message.headers.as_ref();
        let key = match &task {
            Ok(task) => task.head.key.clone(),
            Err(error) => {
                tracing::warn!(%error, "a task cannot be read");
                let key = key_of(headers, &message.subject);
                key.unwrap_or_else(|| unreadable(delivery.message))
            }
        };
        Self::Delivered(Box::new(HeldTask {
            key,
            lane,
            delivery,
            reply,
            types: types_in(headers),
            payload: message.payload,
            task: task.map_err(|error| error.to_string()),
            inputs: None,
            outcome: None,
            history: History::default(),
            stored_outcome: None,
        }))
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
