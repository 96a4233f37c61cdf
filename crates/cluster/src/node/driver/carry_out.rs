//! Carries out the actions of the machine.

use std::fmt::Write;
use std::time::Duration;

use async_nats::Subject;
use async_nats::jetstream::AckKind;
use brigade_pool::{TaskError, TaskErrorKind};
use bytes::Bytes;

use super::{NodeDriver, Tag};
use crate::message::{Body, History, MessageError, StartMessage};
use crate::names::Lane;
use crate::node::held_task::HeldTask;
use crate::node::machine::{Action, Event, HEARTBEAT, PullId, Token};
use crate::node::record;
use crate::node::runs::{EndedRun, RunOutcome};
use crate::publisher::Publication;

impl NodeDriver {
    pub(super) async fn carry_out(&mut self, action: Action) {
        match action {
            Action::Pull { pull, lane, batch, wait } => self.pull(pull, &lane, batch, wait).await,
            Action::Examine(token) => self.start_examination(token),
            Action::Run(token) => {
                self.announce_start(token).await;
                self.run_task(token);
            }
            Action::Stop { token, kill } => self.runs.stop(token, kill),
            Action::RecordOutcome(token) => {
                let outcome = self.held.get_mut(&token).and_then(|held| held.outcome.take());
                let Some(outcome) = outcome else { return };
                self.record_outcome(token, outcome).await;
            }
            Action::RecordUnknown(token) => {
                let names = self.settings.functions.names();
                let Some(held) = self.held.get(&token) else { return };
                let error = record::unknown(held, &self.shared.name, &names);
                self.record_error(token, &error).await;
            }
            Action::RecordGivenUp { token, deaths } => {
                let Some(held) = self.held.get(&token) else { return };
                let error = record::given_up(held, &self.shared.name, deaths, &held.history);
                self.record_error(token, &error).await;
            }
            Action::RecordDead { token, deaths, history } => {
                let Some(held) = self.held.get_mut(&token) else { return };
                held.history = history.clone();
                let names = self.server.names();
                let letter = record::dead_letter(names, &self.shared.name, held, deaths, history);
                self.publish(Tag::End(token), letter).await;
            }
            Action::RecordBegin { token, history, revision } => {
                self.begin_task(token, history, revision).await;
            }
            Action::RecordReturn { token, history, revision } => {
                self.record_history(token, &history, revision).await;
            }
            Action::Extend(token) => {
                let Some(held) = self.held.get(&token) else { return };
                self.acknowledge(held.reply.clone(), AckKind::Progress.into()).await;
            }
            Action::Acknowledge(token) => {
                let Some(held) = self.held.remove(&token) else { return };
                self.start_removal_of_arguments(&held);
                self.acknowledge(held.reply, AckKind::Ack.into()).await;
            }
            Action::Return { token, pause } => {
                let Some(held) = self.held.remove(&token) else { return };
                let pause = (!pause.is_zero()).then_some(pause);
                self.acknowledge(held.reply, AckKind::Nak(pause).into()).await;
            }
            Action::Forget(token) => drop(self.held.remove(&token)),
        }
    }

    async fn pull(&mut self, pull: PullId, lane: &Lane, batch: u32, wait: Option<Duration>) {
        let names = self.server.names();
        let subject =
            format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", names.tasks_stream(), lane.consumer());
        let mut request = format!("{{\"batch\":{batch}");
        let written = match wait {
            Some(wait) => write!(
                request,
                ",\"expires\":{},\"idle_heartbeat\":{}}}",
                wait.as_nanos(),
                HEARTBEAT.as_nanos()
            ),
            None => request.write_str(",\"no_wait\":true}"),
        };
        debug_assert!(written.is_ok(), "a string takes everything");
        let reply = format!("{}{}", self.inbox, pull.0);
        let sent = self.client.publish_with_reply(subject, reply, request.into()).await;
        if sent.is_err() {
            self.events.push_back(Event::PullEnded { pull, has_failed: true });
        }
    }

    /// Tells the client that a task begins, if it wants to know.
    async fn announce_start(&mut self, token: Token) {
        let Some(HeldTask { key, task: Ok(task), .. }) = self.held.get(&token) else { return };
        if !task.head.announces_start {
            return;
        }
        let (item, host) = (key.item.to_string(), self.shared.host.clone());
        let subject = self.server.names().starts_of(&key.origin);
        if let Ok(message) = (StartMessage { item, host }).to_bytes() {
            // Only a hint. Without a link, the client hears of the outcome later.
            let _ = self.client.publish(subject, message).await;
        }
    }

    /// Records that a task begins. Its items are fetched before, so that it runs at once.
    async fn begin_task(&mut self, token: Token, history: History, revision: u64) {
        let lacks_items =
            |held: &HeldTask| held.inputs.is_none() && held.stored_arguments().is_some();
        if self.held.get(&token).is_some_and(lacks_items) {
            return self.start_loading(token, Some((history, revision)));
        }
        self.record_begin(token, history, revision).await;
    }

    pub(super) async fn record_begin(&mut self, token: Token, history: History, revision: u64) {
        self.record_history(token, &history, revision).await;
        if let Some(held) = self.held.get_mut(&token) {
            held.history = history;
        }
    }

    /// Starts the run of a task whose items are here, or lets them be fetched.
    pub(super) fn run_task(&mut self, token: Token) {
        let Some(held) = self.held.get_mut(&token) else { return };
        let Ok(task) = &held.task else { return };
        let items = match (&held.inputs, &task.body) {
            (Some(items), _) | (None, Body::Inline(items)) => items.clone(),
            (None, Body::Stored(_)) => return self.start_loading(token, None),
        };
        held.inputs = Some(items.clone());
        if let Some(message) = self.settings.functions.difference(&task.head.name, held.types) {
            let kind = TaskErrorKind::Function { message };
            let error = TaskError::of(kind, held.label(), held.attempt(), None);
            return self.fail_run(token, &error);
        }
        let Some(function) = self.settings.functions.get(&task.head.name) else { return };
        let place = (&held.lane, held.earlier_attempts());
        if let Some(ended) = self.runs.start(token, function, &task.head, place, items) {
            self.ended(ended);
        }
    }

    /// Ends a run whose items could not be fetched.
    pub(super) fn fail_run(&mut self, token: Token, error: &TaskError) {
        let Some(held) = self.held.get(&token) else { return };
        let outcome = record::outcome_of_error(error, held.items());
        self.ended(EndedRun::done(token, outcome));
    }

    async fn record_error(&mut self, token: Token, error: &TaskError) {
        let Some(held) = self.held.get(&token) else { return };
        let outcome = record::outcome_of_error(error, held.items());
        self.record_outcome(token, outcome).await;
    }

    async fn record_outcome(&mut self, token: Token, outcome: RunOutcome) {
        self.shared.count_recorded();
        if outcome.items.is_large() {
            return self.start_storing(token, outcome);
        }
        let Some(held) = self.held.get(&token) else { return };
        let body = Body::Inline(outcome.items.clone());
        let made = record::outcome(self.server.names(), &self.shared.name, held, &outcome, body);
        self.publish(Tag::End(token), made).await;
    }

    async fn record_history(&mut self, token: Token, history: &History, revision: u64) {
        let Some(held) = self.held.get(&token) else { return };
        let made = record::history(self.server.names(), &held.key, history, revision);
        self.publish(Tag::History(token), made).await;
    }

    pub(super) async fn publish(
        &mut self,
        tag: Tag,
        publication: Result<Publication, MessageError>,
    ) {
        match publication {
            Ok(publication) => self.publisher.publish(tag, publication).await,
            Err(error) => {
                tracing::error!(%error, "a record cannot be encoded");
                self.events.push_back(Event::NotRecorded(tag.token()));
            }
        }
    }

    async fn acknowledge(&self, reply: Subject, kind: Bytes) {
        // Nothing rests on it: the task would be delivered again, and its outcome be found.
        if let Err(error) = self.client.publish(reply, kind).await {
            tracing::debug!(%error, "cannot send an acknowledgment");
        }
    }
}
