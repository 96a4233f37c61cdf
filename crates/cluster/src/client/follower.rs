//! The outcomes of one origin as they arrive: finds the submissions that they belong to.

use std::collections::{HashMap, HashSet};

use async_nats::{HeaderMap, HeaderValue, Message, StatusCode, Subject};

use super::cursor::{Cursor, Place};
use super::machine::Ticket;
use crate::clock::Monotonic;
use crate::names::{Origin, TaskKey};

/// The headers of heartbeats.
const LAST_CONSUMER: &str = "Nats-Last-Consumer";
const CONSUMER_STALLED: &str = "Nats-Consumer-Stalled";

/// The outcomes of one origin.
#[derive(Debug)]
pub(super) struct Follower {
    pub(super) origin: Origin,
    /// The beginning of the subjects of its outcomes.
    prefix: String,
    cursor: Cursor,
    /// The submissions of a batch that are not forgotten, by item. The items of a client have the
    /// numbers of their submissions.
    items: HashMap<String, Vec<Ticket>>,
    /// The items of a batch that have outcomes. A node that finds an outcome does not record
    /// another, so these have to be read.
    done: HashSet<String>,
    /// Number of submissions that are not forgotten.
    wanted: usize,
}

/// The meaning of a message for the driver.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MessageMeaning {
    /// An outcome of these submissions.
    Outcome(Vec<Ticket>),
    /// A sign of life, with a subject to be answered, if any.
    Alive(Option<Subject>),
    /// Outcomes were lost: another consumer is needed.
    Gap,
}

impl Follower {
    /// Follows the outcomes behind a sequence. `filter` matches their subjects.
    pub(super) fn new(origin: Origin, filter: &str, behind: u64, now: Monotonic) -> Self {
        Self {
            origin,
            prefix: filter.trim_end_matches('>').to_owned(),
            cursor: Cursor::behind(behind, now),
            items: HashMap::new(),
            done: HashSet::new(),
            wanted: 0,
        }
    }

    /// Returns the sequence of the last outcome that has arrived.
    pub(super) fn last(&self) -> u64 {
        self.cursor.last()
    }

    /// Adds items of a batch that have outcomes.
    pub(super) fn add_done(&mut self, items: impl IntoIterator<Item = String>) {
        self.done.extend(items);
    }

    /// Begins with another consumer. Returns the first sequence that it delivers.
    pub(super) fn restart(&mut self, now: Monotonic) -> u64 {
        self.cursor.restart(now)
    }

    /// Adds a submission of this origin. Returns `true` if its outcome has been recorded.
    pub(super) fn add(&mut self, key: &TaskKey, ticket: Ticket) -> bool {
        self.wanted += 1;
        if self.origin.is_batch() {
            self.items.entry(key.item.as_str().to_owned()).or_default().push(ticket);
        }
        self.done.contains(key.item.as_str())
    }

    /// Removes a submission.
    pub(super) fn remove(&mut self, key: &TaskKey, ticket: Ticket) {
        self.wanted -= 1;
        if let Some(tickets) = self.items.get_mut(key.item.as_str()) {
            tickets.retain(|other| *other != ticket);
            if tickets.is_empty() {
                self.items.remove(key.item.as_str());
            }
        }
    }

    /// Returns the time from which on the silence is too long; `None` if nothing is expected.
    pub(super) fn silent_at(&self) -> Option<Monotonic> {
        (self.wanted > 0).then(|| self.cursor.silent_at())
    }

    /// Places a message of the consumer.
    pub(super) fn arrive(&mut self, message: &Message, now: Monotonic) -> MessageMeaning {
        let place = if message.status == Some(StatusCode::IDLE_HEARTBEAT) {
            let delivered = header(message, LAST_CONSUMER).and_then(|text| text.parse().ok());
            self.cursor.heartbeat(delivered, now)
        } else if message.status.is_some() {
            return MessageMeaning::Alive(None);
        } else {
            let Some((in_stream, in_consumer)) = sequences(message) else {
                return MessageMeaning::Alive(None);
            };
            match self.cursor.outcome(in_stream, in_consumer, now) {
                Place::Next => return MessageMeaning::Outcome(self.tickets(&message.subject)),
                place => place,
            }
        };
        match place {
            Place::Gap => MessageMeaning::Gap,
            Place::Next | Place::Old => MessageMeaning::Alive(flow_control(message)),
        }
    }

    fn tickets(&mut self, subject: &Subject) -> Vec<Ticket> {
        let Some(item) = subject.as_str().strip_prefix(&self.prefix) else { return Vec::new() };
        if self.origin.is_batch() {
            self.done.insert(item.to_owned());
            self.items.get(item).cloned().unwrap_or_default()
        } else {
            item.parse().into_iter().collect()
        }
    }
}

/// Returns the subject that the server waits for before it delivers more.
fn flow_control(message: &Message) -> Option<Subject> {
    if message.status != Some(StatusCode::IDLE_HEARTBEAT) {
        return None;
    }
    message.reply.clone().or_else(|| header(message, CONSUMER_STALLED).map(Subject::from))
}

fn header<'a>(message: &'a Message, name: &str) -> Option<&'a str> {
    let headers: &HeaderMap = message.headers.as_ref()?;
    headers.get(name).map(HeaderValue::as_str)
}

/// Returns the sequences in the stream and in the consumer, which the reply subject contains:
/// `$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>`, with
/// two more tokens behind `ACK` from newer servers.
fn sequences(message: &Message) -> Option<(u64, u64)> {
    let tokens: Vec<&str> = message.reply.as_ref()?.as_str().split('.').collect();
    let at = if tokens.len() > 9 { 7 } else { 5 };
    Some((tokens.get(at)?.parse().ok()?, tokens.get(at + 1)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::names::ItemId;

    fn message(subject: &str, reply: &str) -> Message {
        Message {
            subject: subject.into(),
            reply: Some(reply.into()),
            payload: Bytes::new(),
            headers: None,
            status: None,
            description: None,
            length: 0,
        }
    }

    #[test]
    fn outcomes_find_their_submissions() {
        let now = Monotonic::ZERO;
        let batch = Origin::batch("b").unwrap();
        let mut follower = Follower::new(batch.clone(), "brigade.q.outcome.b.>", 6, now);
        assert_eq!(follower.restart(now), 7);
        assert_eq!(follower.silent_at(), None);
        let key = TaskKey { origin: batch, item: ItemId::named("x").unwrap() };
        assert!(!follower.add(&key, 3));
        assert!(!follower.add(&key, 4));
        assert!(follower.silent_at().is_some());
        let old = message("brigade.q.outcome.b.x", "$JS.ACK.S.C.1.7.1.99.0");
        assert_eq!(follower.arrive(&old, now), MessageMeaning::Outcome(vec![3, 4]));
        let new = message("brigade.q.outcome.b.y", "$JS.ACK.D.H.S.C.1.8.2.99.0.r");
        assert_eq!(follower.arrive(&new, now), MessageMeaning::Outcome(vec![]));
        let lost = message("brigade.q.outcome.b.z", "$JS.ACK.S.C.1.19.4.99.0");
        assert_eq!(follower.arrive(&lost, now), MessageMeaning::Gap);
        follower.remove(&key, 3);
        follower.remove(&key, 4);
        assert_eq!(follower.silent_at(), None);
        assert!(follower.add(&key, 5), "its outcome has arrived before");
    }

    #[test]
    fn a_stalled_consumer_is_answered() {
        let now = Monotonic::ZERO;
        let client = Origin::client("c").unwrap();
        let mut follower = Follower::new(client, "brigade.q.outcome.~c.>", 0, now);
        follower.restart(now);
        let outcome = message("brigade.q.outcome.~c.12", "$JS.ACK.S.C.1.7.1.99.0");
        assert_eq!(follower.arrive(&outcome, now), MessageMeaning::Outcome(vec![12]));
        let mut request = message("d", "fc");
        request.status = Some(StatusCode::IDLE_HEARTBEAT);
        assert_eq!(follower.arrive(&request, now), MessageMeaning::Alive(Some("fc".into())));
        let mut heartbeat = Message { reply: None, ..request };
        assert_eq!(follower.arrive(&heartbeat, now), MessageMeaning::Alive(None));
        let mut headers = HeaderMap::new();
        headers.insert(LAST_CONSUMER, "1");
        headers.insert(CONSUMER_STALLED, "stalled");
        heartbeat.headers = Some(headers);
        assert_eq!(follower.arrive(&heartbeat, now), MessageMeaning::Alive(Some("stalled".into())));
    }
}
