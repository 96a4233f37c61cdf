//! Work of the driver that waits for answers of the server: examinations, large payloads, lists of
//! lanes, and the search for stuck messages.

use std::time::Duration;

use async_nats::Message;
use brigade_codec::chain;
use brigade_pool::{TaskError, TaskErrorKind};

use super::{FIRST_SWEEP_PERIOD, NodeDriver, Tag};
use crate::clock::now;
use crate::message::{Body, History, Items};
use crate::names::Lane;
use crate::node::examination::Examined;
use crate::node::held_task::HeldTask;
use crate::node::machine::{Event, Token, UNKNOWN_LIMIT};
use crate::node::peers::Capability;
use crate::node::record;
use crate::node::runs::RunOutcome;
use crate::node::sweep::StuckMessages;
use crate::payload::PayloadError;

/// The pause before a large payload is stored again.
const PAUSE: Duration = Duration::from_secs(1);

/// The end of a job.
pub(super) enum JobEnd {
    Examined(Token, Examined),
    /// The task begins with the record `begin`, or has begun.
    Loaded {
        token: Token,
        begin: Option<(History, u64)>,
        items: Result<Items, PayloadError>,
    },
    Stored {
        token: Token,
        outcome: RunOutcome,
        body: Body,
    },
    Lanes(Vec<Lane>),
    Swept {
        lanes: Vec<Lane>,
        result: Result<StuckMessages, String>,
    },
    Nothing,
}

impl NodeDriver {
    pub(super) async fn job_ended(&mut self, end: JobEnd) {
        match end {
            JobEnd::Examined(token, Examined { is_done, history, revision }) => {
                if let Some(held) = self.held.get_mut(&token) {
                    held.history = history.clone();
                }
                self.events.push_back(Event::Examined { token, is_done, history, revision });
            }
            JobEnd::Loaded { token, begin: Some((history, revision)), items } => {
                // If they could not be fetched, the run finds that out again, and ends with it.
                if let Some(held) = self.held.get_mut(&token) {
                    held.inputs = items.ok();
                }
                self.record_begin(token, history, revision).await;
            }
            JobEnd::Loaded { token, begin: None, items: Ok(items) } => {
                if let Some(held) = self.held.get_mut(&token) {
                    held.inputs = Some(items);
                    self.run_task(token);
                }
            }
            JobEnd::Loaded { token, begin: None, items: Err(error) } => {
                let Some(held) = self.held.get(&token) else { return };
                let message = error.to_string();
                let kind = TaskErrorKind::Codec { message };
                let error = TaskError::of(kind, held.label(), held.attempt(), None);
                self.fail_run(token, &error);
            }
            JobEnd::Stored { token, outcome, body } => {
                let Some(held) = self.held.get_mut(&token) else {
                    return self.start_removal(body);
                };
                held.stored_outcome = Some(body.clone());
                let names = self.server.names();
                let made = record::outcome(names, &self.shared.name, held, &outcome, body);
                self.publish(Tag::End(token), made).await;
            }
            JobEnd::Lanes(lanes) => self.add_lanes(lanes),
            JobEnd::Swept { lanes, result } => {
                self.is_sweeping = false;
                // The announcement of a lane may have been lost with its client.
                self.add_lanes(lanes);
                match result {
                    Ok(swept) => self.swept(swept),
                    Err(reason) => {
                        tracing::debug!(reason, "cannot look for stuck messages");
                        self.sweep_period = FIRST_SWEEP_PERIOD.max(self.sweep_period / 2);
                    }
                }
            }
            JobEnd::Nothing => {}
        }
    }

    pub(super) fn add_lanes(&mut self, lanes: impl IntoIterator<Item = Lane>) {
        let is_met = |lane: &Lane| {
            let needs = lane.class.requirements();
            let is_chosen =
                self.settings.only_label.as_ref().is_none_or(|label| needs.has_label(label));
            is_chosen && needs.are_met_by(&self.settings.offer)
        };
        let lanes: Vec<Lane> = lanes.into_iter().filter(is_met).collect();
        if !lanes.is_empty() {
            self.events.push_back(Event::Lanes(lanes));
        }
    }

    pub(super) fn start_examination(&self, token: Token) {
        let Some(held) = self.held.get(&token) else { return };
        let (server, key) = (self.server.clone(), held.key.clone());
        let foreign = if self.can_run(held) { None } else { Capability::of(held) };
        self.jobs.push(Box::pin(async move {
            let mut examined = server.examine(&key).await;
            // As long as another node can run the task, its returns by this one do not count.
            if examined.history.unknown >= UNKNOWN_LIMIT
                && let Some(capability) = foreign
                && server.has_peer_for(capability).await
            {
                examined.history.unknown = 0;
            }
            JobEnd::Examined(token, examined)
        }));
    }

    fn can_run(&self, held: &HeldTask) -> bool {
        held.task.as_ref().is_ok_and(|task| self.settings.functions.get(&task.head.name).is_some())
    }

    pub(super) fn start_loading(&self, token: Token, begin: Option<(History, u64)>) {
        let Some(task) = self.held.get(&token).and_then(|held| held.task.as_ref().ok()) else {
            return;
        };
        let (payloads, body) = (self.server.payloads.clone(), task.body.clone());
        self.jobs.push(Box::pin(async move {
            let items = payloads.get(&body).await;
            JobEnd::Loaded { token, begin, items }
        }));
    }

    /// Stores the items of a large outcome, however long that takes: the lease is extended.
    pub(super) fn start_storing(&self, token: Token, outcome: RunOutcome) {
        let Some(held) = self.held.get(&token) else { return };
        let (payloads, key) = (self.server.payloads.clone(), held.key.clone());
        self.jobs.push(Box::pin(async move {
            loop {
                match payloads.put(&key, outcome.items.clone()).await {
                    Ok(body) => return JobEnd::Stored { token, outcome, body },
                    Err(error) => {
                        tracing::warn!(%key, error = chain(&error), "cannot store an outcome; trying again");
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            }
        }));
    }

    /// Removes the object of an outcome that is not the recorded one.
    pub(super) fn remove_stored_outcome(&mut self, token: Token) {
        let body = self.held.get_mut(&token).and_then(|held| held.stored_outcome.take());
        if let Some(body) = body {
            self.start_removal(body);
        }
    }

    pub(super) fn start_removal(&self, body: Body) {
        let payloads = self.server.payloads.clone();
        self.jobs.push(Box::pin(async move {
            payloads.remove(&body).await;
            JobEnd::Nothing
        }));
    }

    /// Removes the arguments of a task that has an outcome, unless a dead letter needs them.
    pub(super) fn start_removal_of_arguments(&self, held: &HeldTask) {
        let Some(body) = held.stored_arguments().cloned() else { return };
        // Nothing is given up at its first delivery.
        if held.delivery.number == 1 {
            return self.start_removal(body);
        }
        let (server, key) = (self.server.clone(), held.key.clone());
        self.jobs.push(Box::pin(async move {
            // Without an answer they are left to their age.
            if server.has_dead_letter(&key).await == Ok(false) {
                server.payloads.remove(&body).await;
            }
            JobEnd::Nothing
        }));
    }

    pub(super) fn list_lanes(&self) {
        let server = self.server.clone();
        self.jobs.push(Box::pin(async move {
            match server.settings.lanes(&server.jetstream).await {
                Ok(lanes) => JobEnd::Lanes(lanes),
                Err(error) => {
                    tracing::warn!(error = chain(&error), "cannot list the lanes of the queue");
                    JobEnd::Nothing
                }
            }
        }));
    }

    /// Looks again soon if there is more to find.
    fn swept(&mut self, swept: StuckMessages) {
        if swept.found_any() {
            let StuckMessages { deleted, published_again, .. } = swept;
            tracing::info!(deleted, published_again, "found stuck messages");
        }
        let has_suspects = self.done.is_empty() && !swept.done.is_empty();
        if has_suspects || swept.found_any() {
            self.next_sweep = self.next_sweep.min(now() + FIRST_SWEEP_PERIOD);
        }
        self.done = swept.done;
    }

    pub(super) fn start_sweep(&mut self) {
        self.is_sweeping = true;
        let done = self.done.clone();
        let server = self.server.clone();
        self.jobs.push(Box::pin(async move {
            match server.settings.lanes(&server.jetstream).await {
                Ok(lanes) => JobEnd::Swept { result: server.sweep(&lanes, &done).await, lanes },
                Err(error) => JobEnd::Swept { lanes: Vec::new(), result: Err(chain(&error)) },
            }
        }));
    }

    pub(super) async fn report_status(&self, request: Message) {
        let Some(reply) = request.reply else { return };
        match self.shared.status().to_bytes() {
            Ok(status) => {
                let _ = self.client.publish(reply, status).await;
            }
            Err(error) => tracing::error!(%error, "the status cannot be encoded"),
        }
    }
}
