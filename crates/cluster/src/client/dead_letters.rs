//! Reads the dead letters of a queue, and submits them again.

use std::collections::VecDeque;
use std::sync::Arc;

use async_nats::jetstream::context::PublishErrorKind;
use brigade_codec::chain;

use super::cluster::Cluster;
use super::requests::patiently;
use super::shared::Shared;
use super::submission::once;
use crate::dead_letter::DeadLetter;
use crate::error::ClusterError;
use crate::publisher::Publication;
use crate::server::Server;
use crate::stored_message::first_message;

/// The operation that needs the server.
const LOOK: &str = "look at the dead letters";

/// Number of dead letters that are read at a time. Each has up to half a megabyte.
const PAGE: usize = 32;

/// The dead letters of a queue, the oldest first. Returned by [`Cluster::dead_letters`].
pub struct DeadLetters<'cluster> {
    shared: &'cluster Arc<Shared>,
    page: VecDeque<DeadLetter>,
    /// The first sequence of the next page; `None` after the last one.
    next: Option<u64>,
}

/// Some dead letters, and the sequence behind them if there may be more.
type Page = (VecDeque<DeadLetter>, Option<u64>);

impl Cluster {
    /// Returns the tasks that were given up because they have killed as many workers or nodes as
    /// they may. They are kept as long as outcomes.
    ///
    /// The iterator is lazy: it reads a page at a time, and blocks for the server.
    ///
    /// ```no_run
    /// # use brigade::cluster::Cluster;
    /// let cluster = Cluster::connect("nats://127.0.0.1:4222")?;
    /// for letter in cluster.dead_letters() {
    ///     let letter = letter?;
    ///     println!("{} of {}: {} deaths", letter.key, letter.function, letter.deaths);
    ///     cluster.requeue(&letter)?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dead_letters(&self) -> DeadLetters<'_> {
        DeadLetters { shared: &self.shared, page: VecDeque::new(), next: Some(1) }
    }

    /// Submits a task again that was given up, with its history forgotten.
    ///
    /// Its outcome is removed, so a client that opens the batch again waits for the new one.
    /// Handles that have returned the error keep it. The dead letter is removed. A second call for
    /// the same letter does nothing and returns `false`, as after
    /// [`remove_dead_letter`](Self::remove_dead_letter).
    ///
    /// # Errors
    /// If the server does not answer, or the queue is full. The call may then be repeated.
    pub fn requeue(&self, letter: &DeadLetter) -> Result<bool, ClusterError> {
        let letter = letter.clone();
        self.shared.ask(LOOK, move |server| async move { server.requeue(&letter).await })
    }

    /// Removes a dead letter. Its task keeps the outcome that it was given up. Returns `false` if
    /// the letter is gone.
    ///
    /// # Errors
    /// If the server does not answer.
    pub fn remove_dead_letter(&self, letter: &DeadLetter) -> Result<bool, ClusterError> {
        let letter = letter.clone();
        self.shared.ask(LOOK, move |server| async move { server.remove_dead_letter(&letter).await })
    }
}

impl Iterator for DeadLetters<'_> {
    type Item = Result<DeadLetter, ClusterError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.page.is_empty() {
            let from = self.next.take()?;
            let page = move |server: Server| async move { server.dead_letters(from).await };
            match self.shared.ask(LOOK, page) {
                Ok(page) => (self.page, self.next) = page,
                Err(error) => return Some(Err(error)),
            }
        }
        self.page.pop_front().map(Ok)
    }
}

brigade_sys::debug_fields!(impl DeadLetters<'_> { next });

impl Server {
    /// Reads dead letters from a sequence on. Leaves out those of other versions. The leader
    /// answers, because its followers may not have heard of the last letters.
    async fn dead_letters(&self, from: u64) -> Result<Page, ClusterError> {
        let (mut letters, mut next) = (VecDeque::new(), from);
        while letters.len() < PAGE {
            let found = patiently("read a dead letter", async || {
                let stream = self.stream(&self.names().history_stream()).await?;
                first_message(&stream, &self.names().all("dead"), next).await
            });
            let Some(message) = found.await? else { return Ok((letters, None)) };
            next = message.sequence + 1;
            match DeadLetter::read(&message) {
                Ok(letter) => letters.push_back(letter),
                Err(reason) => tracing::warn!(reason, "a dead letter cannot be read"),
            }
        }
        Ok((letters, Some(next)))
    }

    /// Returns `true` if the letter is in its stream. The leader answers, because its followers may
    /// not have heard of the last messages.
    async fn has_letter(&self, letter: &DeadLetter) -> Result<bool, ClusterError> {
        let subject = self.names().dead(&letter.key);
        patiently("look for a dead letter", async || {
            let last = self.last(&self.names().history_stream(), &subject).await?;
            Ok(last.is_some_and(|message| message.sequence == letter.origin.sequence))
        })
        .await
    }

    /// Submits the task, and removes the letter last, so that a requeue that was interrupted can be
    /// repeated.
    async fn requeue(&self, letter: &DeadLetter) -> Result<bool, ClusterError> {
        if !self.has_letter(letter).await? {
            return Ok(false);
        }
        let names = self.names();
        let (key, origin) = (&letter.key, &letter.origin);
        self.purge(names.history_stream(), names.returned(key)).await?;
        self.purge(names.outcomes_stream(), names.outcome(key)).await?;
        self.open_lane(&origin.lane).await?;
        let task = Publication {
            subject: names.task(&origin.lane, key).into(),
            headers: once(key, &format!("requeue-{}", origin.sequence)),
            payload: origin.message.clone().into(),
        };
        patiently("submit a dead letter again", async || match self.publish(task.clone()).await {
            Ok(_) => Ok(()),
            // A client has submitted the item itself, or an earlier attempt did.
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(()),
            Err(error) => Err(chain(&error)),
        })
        .await?;
        self.purge(names.history_stream(), names.dead(key)).await?;
        Ok(true)
    }

    async fn remove_dead_letter(&self, letter: &DeadLetter) -> Result<bool, ClusterError> {
        if !self.has_letter(letter).await? {
            return Ok(false);
        }
        if let Some(stored) = &letter.origin.stored {
            self.payloads.remove(stored).await;
        }
        self.purge(self.names().history_stream(), self.names().dead(&letter.key)).await?;
        Ok(true)
    }

    /// Removes the messages with a subject.
    async fn purge(&self, stream: String, subject: String) -> Result<(), ClusterError> {
        patiently("remove a message", async || {
            let purged = self.stream(&stream).await?.purge().filter(&subject).await;
            purged.map(drop).map_err(|error| chain(&error))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use brigade_testkit::NatsServer;

    use super::*;
    use crate::message::{Body, DeadLetterMessage, History, ItemsBuilder, TaskHead, TaskMessage};
    use crate::names::{Lane, Names, Priority, Queue};
    use crate::requirements::Class;
    use crate::setup::QueueSettings;
    use crate::tests::stale_server::{Consumers, StaleServer};

    #[test]
    fn letters_are_found_that_followers_have_not_heard_of() {
        if !NatsServer::installed() {
            return;
        }
        let nats = NatsServer::start();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = async_nats::connect(nats.url()).await.unwrap();
            let settings = QueueSettings::new(Names::new(Queue::default()));
            let real = Server::open(client, settings).await.unwrap();
            let key = "b/item".parse::<crate::TaskKey>().unwrap();
            let head = TaskHead::new(key.clone(), "double/1".to_owned());
            let body = Body::Inline(ItemsBuilder::default().finish());
            let letter = DeadLetterMessage {
                lane: Lane { priority: Priority::default(), class: Class::default() },
                message: TaskMessage { head, body }.to_bytes().unwrap().to_vec(),
                deaths: 3,
                history: History::default(),
                node: "n".to_owned(),
                key: key.clone(),
            };
            let (subject, letter) = (real.names().dead(&key), letter.to_bytes().unwrap());
            real.jetstream.publish(subject, letter).await.unwrap().await.unwrap();
            let jetstream = StaleServer::start(&nats.url(), Consumers::Done { delivered: 0 }).await;
            let (letters, next) = Server { jetstream, ..real }.dead_letters(1).await.unwrap();
            assert_eq!(letters.iter().map(|letter| &letter.key).collect::<Vec<_>>(), [&key]);
            assert!(next.is_none());
        });
    }
}
