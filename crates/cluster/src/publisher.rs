//! Publishes to streams and waits for the answers, with many publishes outstanding.
//!
//! All answers arrive over one subscription, because a request of its own for each publish costs
//! a multiple. A publish that gets no answer is sent again: when the link comes back, after
//! [`ANSWER_TIMEOUT`], and after a pause if the stream has no leader. This is safe because every
//! message has a `Nats-Msg-Id` or an expected sequence. So an answer is final, and a publish ends
//! without one only when the publisher is dropped.
//!
//! A refusal because of the expected sequence may be caused by an earlier attempt of the same
//! publish, whose answer was lost; see [`Refusal::is_retried`].

mod outstanding;

use std::time::{Duration, Instant};

use async_nats::{Client, HeaderMap, Message, StatusCode, Subject, Subscriber};
use brigade_codec::chain;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use serde::Deserialize;

use self::outstanding::{Answered, Outstanding};
use crate::connection::LinkEvent;
use crate::error::ClusterError;

/// Time that a publish waits for its answer before it is sent again.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// The pause before a publish is sent again to a stream that has no leader.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Answers that [`Publisher::answers`] returns at a time, so that its caller gets to other work.
const ANSWERS_AT_A_TIME: usize = 256;

/// A message on its way to a stream. Cloning is cheap except for the headers.
#[derive(Debug, Clone)]
pub(crate) struct Publication {
    pub(crate) subject: Subject,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

/// The final answer to a publish.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    /// The tag that the publish was given.
    pub(crate) tag: T,
    pub(crate) result: Result<Stored, Refusal>,
    /// The message, which may be published again.
    pub(crate) publication: Publication,
}

/// The stream has stored the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    /// The message's sequence in the stream.
    pub(crate) sequence: u64,
    /// `true` if the stream had it already, by its message id.
    pub(crate) is_duplicate: bool,
}

/// The stream has not stored the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
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
    /// The stream has as many messages or bytes as it may.
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
}

impl<T> Publisher<T> {
    /// Subscribes to an inbox of its own.
    pub(crate) async fn new(client: Client) -> Result<Self, ClusterError> {
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
        })
    }

    /// Returns the number of publishes without an answer.
    pub(crate) fn len(&self) -> usize {
        self.outstanding.len() + self.refused.len()
    }

    /// Publishes a message. While the link is down, it is sent later.
    pub(crate) async fn publish(&mut self, tag: T, publication: Publication) {
        let number = self.outstanding.add(tag, publication.clone(), Instant::now());
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
            let due = self.outstanding.next_due().filter(|_| self.is_up);
            let timer = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due.into()).await,
                    None => std::future::pending().await,
                }
            };
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
                () = timer => {
                    self.send_due(Instant::now()).await;
                    answers.append(&mut self.refused);
                }
            }
        }
    }

    /// Tells the publisher of a change of the link. When it is up again, everything without an
    /// answer is sent again, since the library does not report which answers were lost.
    pub(crate) async fn on_link(&mut self, event: LinkEvent) {
        let was_up = std::mem::replace(&mut self.is_up, event == LinkEvent::Up);
        if self.is_up && !was_up {
            self.outstanding.make_all_due(Instant::now());
            self.send_due(Instant::now()).await;
        }
    }

    async fn send_due(&mut self, now: Instant) {
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
                self.refused.push(answered.refused(kind));
            }
        }
    }

    fn receive(&mut self, message: &Message, answers: &mut Vec<Answer<T>>) {
        let number = message.subject.as_str().strip_prefix(self.inbox.as_str());
        let Some(number) = number.and_then(|number| number.parse().ok()) else {
            return;
        };
        let verdict = Verdict::of(message);
        if verdict == Verdict::Again {
            self.outstanding.put_off(number, Instant::now() + RETRY_PAUSE);
            return;
        }
        let Some(answered) = self.outstanding.remove(number) else { return };
        match verdict {
            Verdict::Again => {}
            Verdict::Stored(stored) => answers.push(answered.stored(stored)),
            Verdict::Refused(kind) => answers.push(answered.refused(kind)),
        }
    }
}

impl<T> Answered<T> {
    fn stored(self, stored: Stored) -> Answer<T> {
        Answer { tag: self.tag, result: Ok(stored), publication: self.publication }
    }

    fn refused(self, kind: RefusalKind) -> Answer<T> {
        let refusal = Refusal { kind, is_retried: self.is_retried };
        Answer { tag: self.tag, result: Err(refusal), publication: self.publication }
    }
}

/// The meaning of a reply.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Stored(Stored),
    Refused(RefusalKind),
    /// The stream has no leader at the moment.
    Again,
}

/// The reply of a stream; fields that are not needed are left out.
#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    seq: u64,
    #[serde(default)]
    duplicate: bool,
    error: Option<ReplyError>,
}

#[derive(Deserialize)]
struct ReplyError {
    #[serde(default)]
    code: u32,
    #[serde(default)]
    err_code: u32,
    #[serde(default)]
    description: String,
}

/// "wrong last sequence".
const WRONG_LAST_SEQUENCE: u32 = 10_071;
/// "maximum messages exceeded" and other failures to store.
const STORE_FAILED: u32 = 10_077;

impl Verdict {
    fn of(message: &Message) -> Self {
        if message.status == Some(StatusCode::NO_RESPONDERS) {
            return Self::Again;
        }
        let reply: Reply = match serde_json::from_slice(&message.payload) {
            Ok(reply) => reply,
            Err(error) => {
                let text = format!("the server's reply cannot be read: {error}");
                return Self::Refused(RefusalKind::Other(text));
            }
        };
        match reply.error {
            None => Self::Stored(Stored { sequence: reply.seq, is_duplicate: reply.duplicate }),
            Some(error) if error.err_code == WRONG_LAST_SEQUENCE => {
                Self::Refused(RefusalKind::Exists)
            }
            Some(error)
                if error.err_code == STORE_FAILED && error.description.starts_with("maximum") =>
            {
                Self::Refused(RefusalKind::Full)
            }
            // "temporarily unavailable", "no leader", "insufficient resources" and the like.
            Some(error) if error.code == 503 => Self::Again,
            Some(error) => Self::Refused(RefusalKind::Other(format!(
                "{} ({}/{})",
                error.description, error.code, error.err_code
            ))),
        }
    }
}

#[cfg(test)]
mod tests;
