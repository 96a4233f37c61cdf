//! Publishes to streams and waits for the answers, with many publishes outstanding.
//!
//! All answers arrive over one subscription, because a request of its own for each publish costs
//! a multiple. A publish that gets no answer is sent again: when the link comes back, after
//! [`ANSWER_TIMEOUT`], and after a pause if the answer is not final; see [`verdict`]. This is safe
//! because every message has a `Nats-Msg-Id` or an expected sequence. So an answer is final, and a
//! publish ends without one only when its owner [gives it up](Publisher::give_up).
//!
//! A refusal because of the expected sequence may be caused by an earlier attempt of the same
//! publish, whose answer was lost; see [`PublishRefusal::is_retried`].

mod outstanding;
mod verdict;

use std::time::Duration;

use async_nats::header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE;
use async_nats::{Client, HeaderMap, Message, Subject, Subscriber};
use brigade_codec::chain;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};

use self::outstanding::{Entry, Outstanding};
use self::verdict::Verdict;
use crate::clock::{Monotonic, now, sleep_until};
use crate::error::ClusterError;

/// Time that a publish waits for its answer before it is sent again.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// The pause before a publish is sent again whose answer is not final.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// The pause before a record is sent again to a stream without room, and the time between two
/// warnings of that.
const FULL_PAUSE: Duration = Duration::from_secs(1);
const WARNING_PERIOD: Duration = Duration::from_secs(60);

/// Answers that [`Publisher::answers`] returns at a time, so that its caller gets to other work.
const ANSWERS_AT_A_TIME: usize = 256;

/// A message on its way to a stream. Cloning is cheap except for the headers.
#[derive(Debug, Clone)]
pub(crate) struct Publication {
    pub(crate) subject: Subject,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

/// The sequence that stands for a subject without messages.
pub(crate) const NOTHING: u64 = 0;

/// Returns the header with which a subject takes a message only behind that with a sequence.
pub(crate) fn only_behind(sequence: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, sequence.to_string());
    headers
}

/// The final answer to a publish.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    /// The tag that the publish was given.
    pub(crate) tag: T,
    /// The sequence of the stored message, perhaps by an earlier publish with its id.
    pub(crate) result: Result<u64, PublishRefusal>,
    /// The message, which may be published again.
    pub(crate) publication: Publication,
}

/// The stream has not stored the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublishRefusal {
    pub(crate) kind: RefusalKind,
    /// `true` if the message was sent more than once, so that an earlier attempt may have been
    /// stored.
    pub(crate) is_retried: bool,
}

/// The reason of a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RefusalKind {
    /// The subject's last sequence is not the expected one.
    Exists,
    /// The stream, the account or the server has no room.
    Full,
    /// Anything else; sending the message again would not help.
    Other(String),
}

/// Publishes with answers; the tag of a publish comes back with its answer.
#[derive(Debug)]
pub(crate) struct Publisher<T> {
    client: Client,
    /// The prefix of reply subjects; the number of the publish follows.
    inbox: String,
    replies: Subscriber,
    outstanding: Outstanding<T>,
    /// Answers to publishes that the library refused to send.
    refused: Vec<Answer<T>>,
    is_up: bool,
    /// `true` for a publish that ends if there is no room. Others are sent until there is.
    ends_when_full: fn(&T) -> bool,
    /// Time of the last warning that there is no room.
    warned_at: Option<Monotonic>,
}

impl<T> Publisher<T> {
    /// Subscribes to an inbox of its own. `ends_when_full` chooses the publishes for which
    /// [`RefusalKind::Full`] is an answer.
    pub(crate) async fn new(
        client: Client,
        ends_when_full: fn(&T) -> bool,
    ) -> Result<Self, ClusterError> {
        let inbox = client.new_inbox();
        let replies = client
            .subscribe(format!("{inbox}.*"))
            .await
            .map_err(|error| ClusterError::server("subscribe to an inbox", error))?;
        let inbox = format!("{inbox}.");
        Ok(Self {
            client,
            inbox,
            replies,
            outstanding: Outstanding::default(),
            refused: Vec::new(),
            is_up: true,
            ends_when_full,
            warned_at: None,
        })
    }

    /// Returns the number of publishes without an answer.
    pub(crate) fn len(&self) -> usize {
        self.outstanding.len() + self.refused.len()
    }

    /// Publishes a message. While the link is down, it is sent later.
    pub(crate) async fn publish(&mut self, tag: T, publication: Publication) {
        let number = self.outstanding.add(tag, publication.clone(), now());
        if self.is_up {
            self.send(number, publication).await;
        }
    }

    /// Waits for answers and appends them; at least one. Sends publishes again that are due.
    ///
    /// May be dropped before it is ready without losing an answer.
    pub(crate) async fn answers(&mut self, answers: &mut Vec<Answer<T>>) {
        answers.append(&mut self.refused);
        while answers.is_empty() {
            let due = self.outstanding.next_deadline().filter(|_| self.is_up);
            tokio::select! {
                biased;
                reply = self.replies.next() => {
                    let mut reply = reply;
                    while let Some(message) = reply.take() {
                        self.receive(&message, answers);
                        if answers.len() < ANSWERS_AT_A_TIME {
                            reply = self.replies.next().now_or_never().flatten();
                        }
                    }
                }
                () = sleep_until(due) => {
                    self.send_due(now()).await;
                    answers.append(&mut self.refused);
                }
            }
        }
    }

    /// Sends the chosen publishes no more. They get no answer. Returns their tags.
    pub(crate) fn give_up(&mut self, is_meant: impl Fn(&T, &Publication) -> bool) -> Vec<T> {
        let numbers = self.outstanding.numbers(is_meant).into_iter();
        numbers.filter_map(|number| Some(self.outstanding.remove(number)?.tag)).collect()
    }

    /// Tells the publisher of a change of the link. When it is up again, everything without an
    /// answer is sent again, since the library does not report which answers were lost.
    pub(crate) async fn on_link(&mut self, is_up: bool) {
        let was_up = std::mem::replace(&mut self.is_up, is_up);
        if self.is_up && !was_up {
            self.outstanding.make_all_due(now());
            self.send_due(now()).await;
        }
    }

    async fn send_due(&mut self, now: Monotonic) {
        while let Some((number, publication)) = self.outstanding.take_due(now) {
            self.send(number, publication).await;
        }
    }

    async fn send(&mut self, number: u64, publication: Publication) {
        let Publication { subject, headers, payload } = publication;
        let reply = format!("{}{number}", self.inbox);
        let sent =
            self.client.publish_with_reply_and_headers(subject, reply, headers, payload).await;
        if let Err(error) = sent {
            // The library has checked the size and the subject, and nothing was sent.
            let kind = RefusalKind::Other(chain(&error));
            if let Some(answered) = self.outstanding.remove(number) {
                self.refused.push(answered.with(Err(kind)));
            }
        }
    }

    fn receive(&mut self, message: &Message, answers: &mut Vec<Answer<T>>) {
        let number = message.subject.as_str().strip_prefix(self.inbox.as_str());
        let Some(number) = number.and_then(|number| number.parse().ok()) else {
            return;
        };
        let now = now();
        let result = match Verdict::of(message) {
            Verdict::Stored(sequence) => Ok(sequence),
            Verdict::Again => return self.outstanding.put_off(number, now + RETRY_PAUSE),
            Verdict::Full(reason) => {
                let tag = self.outstanding.tag(number);
                if !tag.is_some_and(self.ends_when_full) {
                    self.warn_of_no_room(&message.subject, &reason, now);
                    return self.outstanding.put_off(number, now + FULL_PAUSE);
                }
                Err(RefusalKind::Full)
            }
            Verdict::Refused(kind) => Err(kind),
        };
        let Some(answered) = self.outstanding.remove(number) else { return };
        answers.push(answered.with(result));
    }

    fn warn_of_no_room(&mut self, subject: &Subject, reason: &str, now: Monotonic) {
        let is_due = |at: Monotonic| now >= at + WARNING_PERIOD;
        if self.warned_at.is_none_or(is_due) {
            self.warned_at = Some(now);
            tracing::warn!(%subject, reason, "a record is kept back until the server has room");
        }
    }
}

impl<T> Entry<T> {
    fn with(self, result: Result<u64, RefusalKind>) -> Answer<T> {
        let Self { tag, publication, is_retried, .. } = self;
        let result = result.map_err(|kind| PublishRefusal { kind, is_retried });
        Answer { tag, result, publication }
    }
}

#[cfg(test)]
mod tests;
