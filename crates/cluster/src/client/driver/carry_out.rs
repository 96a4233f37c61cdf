//! Carries out the steps of the machine, and handles refusals of the server.

use brigade_codec::chain;
use brigade_task::SubmitErrorKind;

use super::{Driver, Report, Tag};
use crate::client::failure;
use crate::client::machine::{Action, Completion, Event, Fact, Ticket};
use crate::client::submission::{Content, publication};
use crate::clock::now;
use crate::connection::Denied;
use crate::message::{Body, Items, OutcomeHead, OutcomeMessage};
use crate::names::Lane;
use crate::publisher::{NOTHING, Publication, RefusalKind, only_behind};

impl Driver {
    /// Tells the machine of a fact, and carries out what follows.
    pub(super) async fn handle(&mut self, ticket: Ticket, fact: Fact) {
        let mut actions = Vec::new();
        self.machine.handle(now(), Event::Fact(ticket, fact), &mut actions);
        self.carry_out(actions).await;
    }

    pub(super) async fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Look(ticket) => self.look(ticket),
                Action::Publish(ticket) => self.publish(ticket).await,
                Action::OfferEnd { ticket, kill } => self.offer_end(ticket, kill).await,
                Action::LeaveWindow(ticket) => {
                    self.shared.window.leave(1);
                    if let Some(record) = self.records.get(&ticket) {
                        record.task.admit(Ok(()));
                    }
                }
                Action::Complete { ticket, with } => self.complete(ticket, with),
                Action::Broadcast { ticket, kill } => self.broadcast(ticket, kill),
                Action::Remove { ticket, sequence } => self.remove(ticket, sequence),
                Action::Search { ticket, sequence, is_published, waited } => {
                    self.search(ticket, sequence, is_published, waited);
                }
                Action::GiveUp(ticket) => {
                    self.publisher.give_up(|tag, _| tag.ticket() == ticket);
                }
                Action::Forget(ticket) => {
                    if let Some(record) = self.records.remove(&ticket) {
                        self.followers[record.follower].follower.remove(&record.task.key, ticket);
                    }
                }
            }
        }
    }

    pub(super) async fn publish(&mut self, ticket: Ticket) {
        let Some(record) = self.records.get_mut(&ticket) else { return };
        match std::mem::replace(&mut record.task.content, Content::Sent) {
            Content::Ready(publication) => {
                self.publisher.publish(Tag::Task(ticket), publication).await;
            }
            Content::Large(head, types, items) => {
                let (key, lane) = (record.task.key.clone(), record.task.lane.clone());
                let server = self.server.clone();
                self.jobs.push(Box::pin(async move {
                    let result = async {
                        let body = server.payloads.put(&key, items).await;
                        let body = body.map_err(|error| chain(&error))?;
                        let head = (*head, types);
                        let publication = publication(server.names(), &lane, head, body.clone());
                        Ok((publication.map_err(|error| error.to_string())?, body))
                    };
                    Report::Put { ticket, result: result.await }
                }));
            }
            // It was published, and has no answer yet.
            Content::Sent => {}
        }
    }

    /// Offers a cancellation as the outcome of all items. Exactly one outcome is recorded.
    async fn offer_end(&mut self, ticket: Ticket, kill: bool) {
        let Some(record) = self.records.get(&ticket) else { return };
        let error = failure::ended(kill, record.task.target.label());
        let items = record.task.target.items();
        let mut head = OutcomeHead::new(self.shared.origin.as_str(), items);
        head.input_hashes.clone_from(&record.task.input_hashes);
        let message = OutcomeMessage { head, body: Body::Inline(Items::of_error(&error, items)) };
        match message.to_bytes() {
            Ok(payload) => {
                let subject = self.names().outcome(&record.task.key).into();
                let headers = only_behind(NOTHING);
                let publication = Publication { subject, headers, payload };
                self.publisher.publish(Tag::End(ticket), publication).await;
            }
            Err(error) => {
                let refusal = RefusalKind::Other(error.to_string());
                Box::pin(self.handle(ticket, Fact::EndOffered(Err(refusal)))).await;
            }
        }
    }

    /// Completes a submission, unless an outcome with its value has done so; see `deliver`.
    fn complete(&mut self, ticket: Ticket, with: Completion) {
        let Some(record) = self.records.get(&ticket) else { return };
        let label = record.task.target.label();
        let (error, refusal) = match with {
            // `deliver` passes the value on.
            Completion::Outcome => return,
            Completion::Ended { kill } => (failure::ended(kill, label), None),
            Completion::Full => (failure::ended(false, label), Some(SubmitErrorKind::Full)),
            Completion::Lost(reason) => {
                tracing::warn!(key = %record.task.key, reason, "a task is lost");
                (failure::lost(&reason, label), Some(failure::not_submitted(&reason)))
            }
            Completion::Failed(reason) => {
                let refusal = failure::not_submitted(&reason);
                (failure::disconnected(&reason, label), Some(refusal))
            }
        };
        if let Some(refusal) = refusal {
            record.task.admit(Err(refusal));
        }
        record.task.target.fail(error);
    }

    fn broadcast(&mut self, ticket: Ticket, kill: bool) {
        let Some(record) = self.records.get(&ticket) else { return };
        let (server, key) = (self.server.clone(), record.task.key.clone());
        self.endings += 1;
        self.jobs.push(Box::pin(async move {
            if let Err(error) = server.broadcast(key, kill).await {
                tracing::warn!(error = chain(&error), "nodes were not told of a cancellation");
            }
            Report::Ended
        }));
    }

    fn remove(&mut self, ticket: Ticket, sequence: Option<u64>) {
        let Some(record) = self.records.get_mut(&ticket) else { return };
        let (key, lane) = (record.task.key.clone(), record.task.lane.clone());
        let (server, stored) = (self.server.clone(), record.stored.take());
        self.endings += 1;
        self.jobs.push(Box::pin(async move {
            // A node that takes the task in spite of this cannot record an outcome.
            if let Err(reason) = server.remove(&key, &lane, sequence).await {
                tracing::debug!(%key, reason, "a cancelled task stays in the queue");
            }
            if let Some(stored) = stored {
                server.payloads.remove(&stored).await;
            }
            Report::Ended
        }));
    }

    pub(super) fn open_lane(&mut self, lane: Lane) {
        let server = self.server.clone();
        self.lanes.insert(lane.clone());
        self.jobs.push(Box::pin(async move {
            match server.open_lane(&lane).await {
                Ok(()) => Report::Done,
                Err(error) => Report::LaneFailed(lane, chain(&error)),
            }
        }));
    }

    /// Fails what waits for the answer to a message that this login may not publish.
    pub(super) async fn denied(&mut self, denied: &Denied) {
        tracing::warn!("{denied}");
        let is_denied = |_: &Tag, publication: &Publication| {
            denied.is_publish && publication.subject.as_str() == denied.subject
        };
        for tag in self.publisher.give_up(is_denied) {
            let refusal = RefusalKind::Other(denied.to_string());
            let event = match tag {
                Tag::Task(_) => Fact::Published(Err(refusal)),
                Tag::End(_) => Fact::EndOffered(Err(refusal)),
            };
            self.handle(tag.ticket(), event).await;
        }
    }
}
