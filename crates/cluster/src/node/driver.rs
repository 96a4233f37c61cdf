//! The driver: one thread with a connection, which feeds the machine with events and carries its
//! actions out.

mod carry_out;
mod denied;
mod drain;
mod jobs;
mod open;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, Message, Subscriber};
use brigade_pool::PoolError;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};

use self::jobs::JobEnd;
pub(super) use self::open::NodeSettings;
use super::delivery::FromServer;
use super::held_task::HeldTask;
use super::machine::{Action, Delivery, Event, Machine, Token};
use super::runs::{EndedRun, Runs};
use super::status::Shared;
use crate::clock::{Monotonic, now, sleep_until};
use crate::connection::{Connection, LinkEvent, log_link};
use crate::error::ClusterError;
use crate::message::CancelMessage;
use crate::names::Lane;
use crate::publisher::{Answer, PublishRefusal, Publisher, RefusalKind};
use crate::server::Server;

/// Messages that are taken at a time, so that other events get their turn.
const MESSAGES_AT_A_TIME: usize = 256;

/// Time between the first two looks for stuck messages after a reconnect. Messages get stuck in
/// the seconds after a crash, so the time doubles up to that between all later ones.
const FIRST_SWEEP_PERIOD: Duration = Duration::from_secs(2);
const LAST_SWEEP_PERIOD: Duration = Duration::from_secs(64);

/// Maximum delay of the first look, so that nodes do not all look at the same moment.
const SWEEP_DELAY_MILLIS: u64 = 1_000;

/// Time for the last acknowledgments when the node ends.
const FLUSH_PATIENCE: Duration = Duration::from_secs(2);

/// A node at work.
pub(super) struct NodeDriver {
    connection: Connection,
    client: Client,
    server: Server,
    publisher: Publisher<Tag>,
    /// The prefix of the reply subjects of requests for tasks.
    inbox: String,
    deliveries: Subscriber,
    /// Number of messages that `deliveries` has had.
    received: u64,
    cancellations: Subscriber,
    new_lanes: Subscriber,
    elections: Subscriber,
    status_requests: Subscriber,
    machine: Machine,
    settings: NodeSettings,
    runs: Runs,
    jobs: FuturesUnordered<LocalBoxFuture<'static, JobEnd>>,
    held: HashMap<Token, HeldTask>,
    events: VecDeque<Event>,
    actions: Vec<Action>,
    shared: Arc<Shared>,
    last_token: u64,
    next_sweep: Monotonic,
    sweep_period: Duration,
    is_sweeping: bool,
    /// Sequences of tasks with an outcome that the last look for stuck messages found.
    done: BTreeSet<u64>,
    /// `true` once the server sends no more tasks.
    is_closed: bool,
    is_up: bool,
    /// Reason why the node can run no tasks any more.
    failure: Option<ClusterError>,
}

/// The task of a record that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    /// An outcome or a dead letter: the first one counts.
    End(Token),
    /// A history, which replaces the one that was read.
    History(Token),
}

impl Tag {
    fn token(self) -> Token {
        match self {
            Self::End(token) | Self::History(token) => token,
        }
    }
}

impl NodeDriver {
    /// Works until the node is drained.
    pub(super) async fn run(mut self) -> Result<(), ClusterError> {
        let mut answers = Vec::new();
        while !(self.machine.is_drained() && self.is_closed) {
            self.take(&mut answers).await;
            if self.failure.is_some() && !self.machine.is_draining() {
                self.drain().await;
            }
            self.settle().await;
        }
        // The last acknowledgments are on their way only when the library has written them. Without
        // a server it waits, and the tasks are found to have outcomes later.
        let flushed = tokio::time::timeout(FLUSH_PATIENCE, self.client.flush()).await;
        if !matches!(flushed, Ok(Ok(()))) {
            tracing::warn!("cannot send the last acknowledgments");
        }
        self.failure.map_or(Ok(()), Err)
    }

    /// Waits for events of one source, and handles them.
    async fn take(&mut self, answers: &mut Vec<Answer<Tag>>) {
        let sweep = (!self.is_sweeping).then_some(self.next_sweep);
        let time = self.machine.next_deadline().into_iter().chain(sweep).min();
        // Without an order, so that no source of events starves the others.
        tokio::select! {
            event = self.connection.next_event() => self.link_changed(event).await,
            () = self.publisher.answers(answers), if self.publisher.len() > 0 => {
                for answer in answers.drain(..) {
                    self.answered(answer);
                }
            }
            ended = self.runs.next() => {
                self.ended(ended);
                for _ in 0..MESSAGES_AT_A_TIME {
                    let Some(ended) = self.runs.next().now_or_never() else { break };
                    self.ended(ended);
                }
            }
            message = self.deliveries.next(), if !self.is_closed => match message {
                None => self.is_closed = true,
                Some(message) => {
                    self.received(message);
                    for _ in 0..MESSAGES_AT_A_TIME {
                        let next = self.deliveries.next().now_or_never();
                        let Some(Some(message)) = next else { break };
                        self.received(message);
                    }
                }
            },
            Some(end) = self.jobs.next() => self.job_ended(end).await,
            Some(message) = self.cancellations.next() => {
                let cancelled = CancelMessage::from_bytes(&message.payload);
                let cancelled = cancelled.map(|it| Event::Cancelled { key: it.key, kill: it.kill });
                self.events.extend(cancelled);
            }
            Some(message) = self.new_lanes.next() => {
                let name = std::str::from_utf8(&message.payload).ok();
                self.add_lanes(name.and_then(Lane::of_consumer));
            }
            Some(message) = self.elections.next() => {
                let name = message.subject.rsplit('.').next();
                let lane = name.and_then(Lane::of_consumer);
                self.events.extend(lane.map(Event::LeaderChanged));
            }
            Some(message) = self.status_requests.next() => self.report_status(message).await,
            () = self.shared.drain.notified(), if !self.machine.is_draining() => self.drain().await,
            () = sleep_until(time) => {
                self.events.push_back(Event::Tick);
                if now() >= self.next_sweep && !self.is_sweeping {
                    self.next_sweep = now() + self.sweep_period;
                    self.sweep_period = LAST_SWEEP_PERIOD.min(2 * self.sweep_period);
                    self.start_sweep();
                }
            }
        }
    }

    /// Lets the machine handle all events, and carries its actions out until there are none.
    async fn settle(&mut self) {
        while let Some(event) = self.events.pop_front() {
            let mut actions = std::mem::take(&mut self.actions);
            self.machine.handle(now(), event, &mut actions);
            for action in actions.drain(..) {
                self.carry_out(action).await;
            }
            self.actions = actions;
        }
        self.shared.set(&self.machine);
    }

    async fn link_changed(&mut self, event: LinkEvent) {
        let is_up = match event {
            LinkEvent::Up => true,
            LinkEvent::Down => false,
            LinkEvent::Denied(denied) => return self.denied(denied),
        };
        if std::mem::replace(&mut self.is_up, is_up) != is_up {
            log_link(is_up);
        }
        self.publisher.on_link(is_up).await;
        self.events.push_back(Event::Link { is_up });
        if self.machine.is_draining() {
            // The server has forgotten how many messages it was to send.
            self.is_closed = true;
        }
        if is_up {
            tracing::debug!(node = self.shared.name, "connected");
            self.list_lanes();
            let hash = crate::input_hash::input_hash(self.shared.name.as_bytes());
            self.next_sweep = now() + Duration::from_millis(hash % SWEEP_DELAY_MILLIS);
            self.sweep_period = FIRST_SWEEP_PERIOD;
        }
    }

    fn received(&mut self, message: Message) {
        self.received += 1;
        let event = match FromServer::read(message, &self.inbox) {
            FromServer::Delivered(held) => return self.delivered(*held),
            FromServer::Heartbeat(pull) => Event::Heartbeat(pull),
            FromServer::Ended { pull, has_failed } => Event::PullEnded { pull, has_failed },
            FromServer::Unknown => return,
        };
        self.events.push_back(event);
    }

    fn delivered(&mut self, held: HeldTask) {
        self.last_token += 1;
        let token = Token(self.last_token);
        let facts = held.facts(|name| self.settings.functions.get(name).is_some());
        let (lane, key, id) = (held.lane.clone(), held.key.clone(), held.delivery);
        self.held.insert(token, held);
        self.events.push_back(Event::Delivered(Delivery { token, lane, key, id, facts }));
    }

    fn ended(&mut self, ended: EndedRun) {
        let EndedRun { token, end, outcome, failure } = ended;
        let failure = failure.map(|reason| PoolError::Broken { reason }.into());
        self.failure = failure.or(self.failure.take());
        if let Some(held) = self.held.get_mut(&token) {
            held.outcome = outcome.or(held.outcome.take());
        }
        self.events.push_back(Event::Ran { token, end });
    }

    fn answered(&mut self, answer: Answer<Tag>) {
        let Answer { tag, result, .. } = answer;
        let token = tag.token();
        let exists = |refusal: &PublishRefusal| refusal.kind == RefusalKind::Exists;
        let event = match result {
            Ok(_) => Event::Recorded(token),
            Err(refusal) if exists(&refusal) && tag == Tag::History(token) => {
                Event::Outdated(token)
            }
            // There is a record, perhaps of an earlier attempt of this node.
            Err(refusal) if exists(&refusal) => {
                self.shared.count_refused();
                if !refusal.is_retried {
                    self.remove_stored_outcome(token);
                }
                Event::Recorded(token)
            }
            Err(refusal) => {
                tracing::error!(?refusal, "a stream refused a record");
                Event::NotRecorded(token)
            }
        };
        self.events.push_back(event);
    }
}
