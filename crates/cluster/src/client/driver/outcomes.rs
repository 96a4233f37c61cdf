//! Receives outcomes, and passes them to those who wait for them.

use std::time::Duration;

use async_nats::Message;
use brigade_codec::chain;
use brigade_task::TaskError;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};

use super::{AT_A_TIME, Driver, Followed, PURGE_PATIENCE, Record, Report};
use crate::client::follower::{Follower, MessageMeaning};
use crate::client::machine::{Fact, Found, Ticket};
use crate::client::purge::PurgeMark;
use crate::client::search::{Located, SearchedTask};
use crate::client::submission::OutcomeTarget;
use crate::client::{failure, record};
use crate::clock::{Monotonic, now};
use crate::message::{Body, Items, OutcomeMessage, item_outcome};
use crate::names::{Origin, TaskKey};

/// The recorded outcome was searched for, and found.
const FOUND: Fact = Fact::Looked { is_found: true };

impl Driver {
    /// Follows the outcomes of an origin, unless it does already.
    pub(super) async fn follow(&mut self, origin: Origin, behind: u64, done: Vec<String>) {
        let next = self.followers.len();
        let at = *self.by_origin.entry(origin.clone()).or_insert(next);
        if at == next {
            let filter = self.names().outcomes_of(&origin);
            let follower = Follower::new(origin, &filter, behind, now());
            self.followers.push(Followed { follower, messages: None });
            self.restart(at).await;
        }
        self.followers[at].follower.add_done(done);
    }

    /// Replaces the consumer of an origin.
    pub(super) async fn restart(&mut self, at: usize) {
        let client = &self.connection.client;
        let deliver = client.new_inbox();
        // Without a subscription, the server forgets the former consumer.
        let messages = client.subscribe(deliver.clone()).await.ok();
        let followed = &mut self.followers[at];
        followed.messages = messages;
        let from = followed.follower.restart(now());
        let (server, origin) = (self.server.clone(), followed.follower.origin.clone());
        self.jobs.push(Box::pin(async move {
            // A failure is silent, and silence leads to another attempt.
            if let Err(error) = server.follow(&origin, from, deliver).await {
                tracing::debug!(error = chain(&error), %origin, "the outcomes are not followed");
            }
            Report::Done
        }));
    }

    pub(super) async fn restart_silent(&mut self, now: Monotonic) {
        for at in 0..self.followers.len() {
            if self.followers[at].follower.silent_at().is_some_and(|silent_at| silent_at <= now) {
                self.restart(at).await;
            }
        }
    }

    /// Removes outcomes outside of batches that were received before this one.
    pub(super) fn purge_before(&self, mark: PurgeMark) {
        let (server, origin) = (self.server.clone(), self.shared.origin.clone());
        let worth = self.purge.worth(mark, now());
        self.jobs.push(Box::pin(async move {
            match server.purge_outcomes(&origin, Some(mark.sequence), worth).await {
                Ok(true) => Report::Purged(mark),
                // The next one removes these too.
                Ok(false) => Report::Done,
                Err(reason) => {
                    tracing::debug!(reason, "the outcomes that were received are not removed");
                    Report::Done
                }
            }
        }));
    }

    /// Removes all outcomes outside of batches. Those that are not removed expire.
    pub(super) async fn purge_all(&self) {
        let last = self.purge.last();
        if !self.shared.is_up() || self.purge.count(last) == 0 {
            return;
        }
        let worth = self.purge.worth(last, now());
        let purge = self.server.purge_outcomes(&self.shared.origin, None, worth);
        match tokio::time::timeout(PURGE_PATIENCE, purge).await {
            Ok(Ok(_)) => {}
            Ok(Err(reason)) => tracing::debug!(reason, "the outcomes are not removed"),
            Err(_) => tracing::debug!("the removal of the outcomes takes too long"),
        }
    }

    /// Receives a message of a consumer, and those behind it.
    pub(super) async fn on_outcomes(&mut self, at: usize, first: Message) {
        self.on_outcome(at, first).await;
        for _ in 0..AT_A_TIME {
            let messages = self.followers[at].messages.as_mut();
            let next = messages.and_then(|messages| messages.next().now_or_never().flatten());
            let Some(message) = next else { return };
            self.on_outcome(at, message).await;
        }
    }

    async fn on_outcome(&mut self, at: usize, message: Message) {
        let now = now();
        match self.followers[at].follower.arrive(&message, now) {
            MessageMeaning::Alive(None) => {}
            MessageMeaning::Alive(Some(subject)) => {
                let _ = self.connection.client.publish(subject, Bytes::new()).await;
            }
            MessageMeaning::Gap => self.restart(at).await,
            MessageMeaning::Outcome(tickets) => {
                if at == 0 {
                    self.purge.received(self.followers[at].follower.last(), now);
                }
                if tickets.iter().any(|ticket| self.records.contains_key(ticket)) {
                    self.receive(tickets, Fact::Outcome, &message.payload).await;
                }
            }
        }
    }

    /// Looks for the outcome of an item that an earlier run has submitted.
    pub(super) fn look(&mut self, ticket: Ticket) {
        let Some(record) = self.records.get(&ticket) else { return };
        let subject = self.names().outcome(&record.task.key);
        let server = self.server.clone();
        self.jobs.push(Box::pin(async move {
            let found = server.outcome(&subject).await.map_err(|error| chain(&error));
            Report::Looked { ticket, found }
        }));
    }

    pub(super) async fn looked(&mut self, ticket: Ticket, found: Result<Option<Bytes>, String>) {
        match found {
            Ok(Some(message)) => self.receive(vec![ticket], FOUND, &message).await,
            Ok(None) => self.handle(ticket, Fact::Looked { is_found: false }).await,
            Err(reason) => self.deliver(&[ticket], FOUND, Err(reason)).await,
        }
    }

    /// Searches for a task that has waited for long.
    pub(super) fn search(
        &mut self,
        ticket: Ticket,
        sequence: Option<u64>,
        is_published: bool,
        waited: Duration,
    ) {
        let Some(record) = self.records.get(&ticket) else { return };
        let (key, lane) = (record.task.key.clone(), record.task.lane.clone());
        let (server, is_up) = (self.server.clone(), self.shared.is_up());
        self.jobs.push(Box::pin(async move {
            let found = if is_up {
                let task =
                    SearchedTask { key: &key, lane: &lane, sequence, is_published, age: waited };
                server.search(task).await
            } else {
                Err("the link is down".to_owned())
            };
            Report::Searched { ticket, found }
        }));
    }

    pub(super) async fn searched(&mut self, ticket: Ticket, found: Result<Located, String>) {
        let (found, outcome) = match found {
            Ok(Located::Outcome(message)) => (Found::Task, Some(message)),
            Ok(Located::Queue) => (Found::Task, None),
            Ok(Located::Nowhere(reason)) => (Found::Nowhere(reason), None),
            Err(reason) => {
                tracing::debug!(ticket, reason, "the server does not say where a task is");
                (Found::Unknown, None)
            }
        };
        self.handle(ticket, Fact::Searched(found)).await;
        if let Some(message) = outcome {
            self.receive(vec![ticket], Fact::Outcome, &message).await;
        }
    }

    /// Reads an outcome, perhaps in the object store, and delivers it with the fact.
    async fn receive(&mut self, tickets: Vec<Ticket>, fact: Fact, message: &Bytes) {
        match OutcomeMessage::from_bytes(message) {
            Ok(outcome) if matches!(outcome.body, Body::Stored(_)) => {
                let server = self.server.clone();
                // Batches keep theirs for the next run.
                let is_wanted_later = self.is_of_batch(&tickets);
                self.jobs.push(Box::pin(async move {
                    let read = server.payloads.get(&outcome.body).await;
                    if read.is_ok() && !is_wanted_later {
                        server.payloads.remove(&outcome.body).await;
                    }
                    let read = read.map_err(|error| error.to_string());
                    let outcome =
                        read.map(|items| OutcomeMessage { body: Body::Inline(items), ..outcome });
                    Report::Read { tickets, fact, outcome }
                }));
            }
            Ok(outcome) => self.deliver(&tickets, fact, Ok(outcome)).await,
            Err(error) => self.deliver(&tickets, fact, Err(error.to_string())).await,
        }
    }

    fn is_of_batch(&self, tickets: &[Ticket]) -> bool {
        let record = tickets.iter().find_map(|ticket| self.records.get(ticket));
        record.is_some_and(|record| record.task.key.origin.is_batch())
    }

    /// Passes an outcome to the submissions that it belongs to, and the fact to the machine.
    pub(super) async fn deliver(
        &mut self,
        tickets: &[Ticket],
        fact: Fact,
        outcome: Result<OutcomeMessage, String>,
    ) {
        for &ticket in tickets {
            if let Some(record) = self.records.get(&ticket)
                && self.machine.is_incomplete(ticket)
            {
                record.deliver(&outcome);
            }
            self.handle(ticket, fact.clone()).await;
        }
    }
}

impl Record {
    /// Passes an outcome to the caller.
    fn deliver(&self, outcome: &Result<OutcomeMessage, String>) {
        let message = match outcome {
            Ok(outcome)
                // A node that could not run the task has no hashes.
                if self.task.input_hashes.is_empty()
                    || outcome.head.input_hashes.is_empty()
                    || outcome.head.input_hashes == self.task.input_hashes =>
            {
                return pass_on(&self.task.target, outcome);
            }
            Ok(_) => other_input(&self.task.key),
            Err(reason) => format!("the outcome cannot be read: {reason}"),
        };
        self.task.target.fail(failure::codec(message, self.task.target.label()));
    }
}

/// Passes an outcome to the caller. Its value is decoded there.
fn pass_on(target: &OutcomeTarget, outcome: &OutcomeMessage) {
    let Body::Inline(items) = &outcome.body else { return };
    match target {
        OutcomeTarget::Task(record) => {
            let outcome = single(items.clone());
            let codec = |message| Err(failure::codec(message, record.label.clone()));
            record::complete(record, outcome.unwrap_or_else(codec));
        }
        OutcomeTarget::Chunk { outcomes, index, items: expected } => {
            let outcome = if outcome.head.items == *expected {
                Ok((items.clone(), outcome.head.run_time))
            } else if let (1, Ok(Err(error))) = (outcome.head.items, single(items.clone())) {
                // A node that cannot read the task does not know how many items it has.
                Err(error)
            } else {
                let message = format!(
                    "the outcome has {} items instead of {expected}; did the batch have another \
                     chunk size?",
                    outcome.head.items
                );
                Err(failure::codec(message, None))
            };
            // The map may have been dropped.
            let _ = outcomes.send((*index, outcome));
        }
    }
}

/// Returns the outcome of a single task.
fn single(mut items: Items) -> Result<Result<Bytes, TaskError>, String> {
    let item = items.next().ok_or("the outcome has no item")?;
    item.and_then(item_outcome).map_err(|error| error.to_string())
}

fn other_input(key: &TaskKey) -> String {
    format!(
        "the item {} of the batch {} has an outcome for another input: use another name for a \
         batch with other inputs",
        key.item, key.origin
    )
}
