//! The driver: one thread that owns the connection, asks the machine, and carries its steps out.
//!
//! It never waits for the server: publications have a [`Publisher`], outcomes arrive by
//! subscription, and everything else is a job whose result comes back as a [`Report`].

mod carry_out;
mod outcomes;

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_nats::{Message, Subscriber};
use bytes::Bytes;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::mpsc::UnboundedReceiver;

use super::failure;
use super::follower::Follower;
use super::machine::{Event, Fact, Machine, Ticket};
use super::purge::{Purge, PurgeMark};
use super::search::Located;
use super::shared::{Command, Shared};
use super::submission::{Content, Submission};
use crate::clock::{Monotonic, now, sleep_until};
use crate::connection::{Connection, LinkEvent, log_link};
use crate::error::ClusterError;
use crate::message::{Body, OutcomeMessage};
use crate::names::{Lane, Names, Origin};
use crate::publisher::{Answer, Publication, Publisher, RefusalKind};
use crate::server::Server;

/// Messages and commands that are handled before the driver looks at other things.
const AT_A_TIME: usize = 256;

/// Time for outstanding publications when the cluster is closed.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// Time for the removal of outcomes when the cluster is closed.
const PURGE_PATIENCE: Duration = Duration::from_secs(2);

type Job = Pin<Box<dyn Future<Output = Report>>>;

/// The driver of a cluster.
pub(super) struct Driver {
    shared: Arc<Shared>,
    connection: Connection,
    server: Server,
    publisher: Publisher<Tag>,
    machine: Machine,
    records: HashMap<Ticket, Record>,
    followers: Vec<Followed>,
    /// The positions of followers. The first follows the tasks outside of batches.
    by_origin: HashMap<Origin, usize>,
    jobs: FuturesUnordered<Job>,
    /// Number of jobs that end cancelled tasks. The cluster is not closed before them.
    endings: usize,
    /// The lanes whose consumers exist, or are being created.
    lanes: HashSet<Lane>,
    purge: Purge,
}

/// An origin, and the subscription to its outcomes.
struct Followed {
    follower: Follower,
    messages: Option<Subscriber>,
}

/// The driver's record of a submission that is not forgotten.
struct Record {
    task: Box<Submission>,
    /// The position of its origin's follower.
    follower: usize,
    /// The object with the items, if there is one.
    stored: Option<Body>,
}

/// The subject of a publication's answer.
#[derive(Debug, Clone, Copy)]
enum Tag {
    Task(Ticket),
    End(Ticket),
}

impl Tag {
    fn ticket(self) -> Ticket {
        match self {
            Self::Task(ticket) | Self::End(ticket) => ticket,
        }
    }
}

/// The result of a job.
enum Report {
    /// There is nothing to be done.
    Done,
    /// A cancellation was announced to the nodes, or its task was deleted.
    Ended,
    /// The items of a large task are in the object store.
    Put { ticket: Ticket, result: Result<(Publication, Body), String> },
    /// The outcome of an earlier run was searched for.
    Looked { ticket: Ticket, found: Result<Option<Bytes>, String> },
    /// The items of outcomes were read from the object store. The machine learns the fact.
    Read { tickets: Vec<Ticket>, fact: Fact, outcome: Result<OutcomeMessage, String> },
    /// A task was searched for that has waited for long.
    Searched { ticket: Ticket, found: Result<Located, String> },
    /// The outcomes before this one were removed.
    Purged(PurgeMark),
    /// A lane could not be opened.
    LaneFailed(Lane, String),
}

impl Driver {
    /// Opens the queue on a connection. `last_outcome` is the sequence of the last outcome.
    pub(super) async fn open(
        connection: Connection,
        server: Server,
        shared: Arc<Shared>,
        last_outcome: u64,
    ) -> Result<Self, ClusterError> {
        let client = connection.client.clone();
        let mut driver = Self {
            publisher: Publisher::new(client, |tag| matches!(tag, Tag::Task(_))).await?,
            connection,
            machine: Machine::default(),
            records: HashMap::new(),
            followers: Vec::new(),
            by_origin: HashMap::new(),
            jobs: FuturesUnordered::new(),
            endings: 0,
            lanes: HashSet::new(),
            purge: Purge::new(server.settings.lease, now()),
            server,
            shared,
        };
        // The consumer exists before the first task is published.
        let origin = driver.shared.origin.clone();
        driver.follow(origin, last_outcome, Vec::new()).await;
        Ok(driver)
    }

    /// Runs until the cluster is closed.
    pub(super) async fn run(mut self, mut commands: UnboundedReceiver<Command>) {
        let mut received = Vec::new();
        let mut answers = Vec::new();
        let mut closes_at = None;
        loop {
            if let Some(at) = closes_at
                && (self.publisher.len() + self.endings == 0 || now() >= at)
            {
                break;
            }
            let next = self.next_timer().into_iter().chain(closes_at).min();
            tokio::select! {
                event = self.connection.next_event() => self.on_link(event).await,
                () = self.publisher.answers(&mut answers) => {
                    for answer in answers.drain(..) {
                        self.on_answer(answer).await;
                    }
                }
                (at, message) = next_outcome(&mut self.followers) => {
                    self.on_outcomes(at, message).await;
                }
                count = commands.recv_many(&mut received, AT_A_TIME) => {
                    if count == 0 {
                        // Nobody can send another command.
                        closes_at = Some(now());
                    }
                    for command in received.drain(..) {
                        if matches!(command, Command::Close) {
                            closes_at = Some(now() + CLOSE_PATIENCE);
                        }
                        self.on_command(command).await;
                    }
                }
                Some(report) = self.jobs.next() => self.on_report(report).await,
                () = sleep_until(next) => self.on_timer().await,
            }
        }
        commands.close();
        let callbacks = Arc::clone(&self.shared.callbacks);
        self.end(&mut commands).await;
        callbacks.end();
    }

    async fn on_command(&mut self, command: Command) {
        match command {
            Command::Submit(task) => self.submit(task).await,
            Command::End { ticket, kill } => {
                self.handle(ticket, Fact::EndWanted { kill }).await;
            }
            Command::Follow { origin, behind, done } => self.follow(origin, behind, done).await,
            Command::Run(job) => {
                let job = job(self.server.clone());
                self.jobs.push(Box::pin(job.map(|()| Report::Done)));
            }
            Command::Close => {}
        }
    }

    async fn submit(&mut self, task: Box<Submission>) {
        let Submission { ticket, when_full, .. } = *task;
        let Some(&follower) = self.by_origin.get(&task.key.origin) else {
            let label = task.target.label();
            task.target.fail(failure::disconnected("the batch is not open", label));
            return self.shared.window.leave(1);
        };
        let has_outcome = self.followers[follower].follower.add(&task.key, ticket);
        if !self.lanes.contains(&task.lane) {
            self.open_lane(task.lane.clone());
        }
        self.records.insert(ticket, Record { task, follower, stored: None });
        self.handle(ticket, Fact::Submitted { when_full, has_outcome }).await;
    }

    async fn on_answer(&mut self, answer: Answer<Tag>) {
        let Answer { tag, result, publication } = answer;
        let answer = result.map_err(|refusal| refusal.kind);
        match tag {
            Tag::Task(ticket) => {
                if answer == Err(RefusalKind::Full)
                    && let Some(record) = self.records.get_mut(&ticket)
                {
                    record.task.content = Content::Ready(publication);
                }
                self.handle(ticket, Fact::Published(answer)).await;
            }
            Tag::End(ticket) => {
                if let Err(kind) = &answer
                    && *kind != RefusalKind::Exists
                {
                    tracing::warn!(?kind, "a cancellation cannot be recorded");
                }
                self.handle(ticket, Fact::EndOffered(answer.map(drop))).await;
            }
        }
    }

    async fn on_report(&mut self, report: Report) {
        match report {
            Report::Done => {}
            Report::Ended => self.endings -= 1,
            Report::Put { ticket, result: Ok((publication, stored)) } => {
                if let Some(record) = self.records.get_mut(&ticket) {
                    record.task.content = Content::Ready(publication);
                    record.stored = Some(stored);
                    self.publish(ticket).await;
                }
            }
            Report::Put { ticket, result: Err(reason) } => {
                self.handle(ticket, Fact::Published(Err(RefusalKind::Other(reason)))).await;
            }
            Report::Looked { ticket, found } => self.looked(ticket, found).await,
            Report::Read { tickets, fact, outcome } => self.deliver(&tickets, fact, outcome).await,
            Report::Searched { ticket, found } => self.searched(ticket, found).await,
            Report::Purged(mark) => self.purge.removed(mark, now()),
            Report::LaneFailed(lane, reason) => {
                // The next task of the lane tries again.
                tracing::warn!(%reason, lane = lane.consumer(), "a lane cannot be opened");
                self.lanes.remove(&lane);
            }
        }
    }

    async fn on_link(&mut self, event: LinkEvent) {
        let is_up = match event {
            LinkEvent::Up => true,
            LinkEvent::Down => false,
            LinkEvent::Denied(denied) => return self.denied(&denied).await,
        };
        let was_up = self.shared.set_up(is_up);
        if is_up != was_up {
            log_link(is_up);
        }
        self.publisher.on_link(is_up).await;
        if is_up && !was_up {
            self.purge.put_off(now());
            // The consumers of outcomes live in the memory of one server.
            for at in 0..self.followers.len() {
                self.restart(at).await;
            }
        }
    }

    async fn on_timer(&mut self) {
        let now = now();
        let mut actions = Vec::new();
        self.machine.handle(now, Event::Tick, &mut actions);
        self.carry_out(actions).await;
        self.restart_silent(now).await;
        if let Some(mark) = self.purge.tick(now) {
            self.purge_before(mark);
        }
    }

    fn next_timer(&self) -> Option<Monotonic> {
        let silent = self.followers.iter().filter_map(|followed| followed.follower.silent_at());
        silent.chain(self.machine.next_deadline()).chain(self.purge.due()).min()
    }

    /// Fails everything that is left, after the last answer.
    async fn end(mut self, commands: &mut UnboundedReceiver<Command>) {
        const REASON: &str = "the client was closed; the task may run nevertheless";
        self.shared.window.close();
        while let Some(command) = commands.recv().await {
            if let Command::Submit(task) = command {
                fail(&task, "the client was closed");
            }
        }
        for record in std::mem::take(&mut self.records).into_values() {
            fail(&record.task, REASON);
        }
        self.purge_all().await;
        // Cancellations that were published last.
        let _ = tokio::time::timeout(CLOSE_PATIENCE, self.connection.client.flush()).await;
    }

    fn names(&self) -> &Names {
        self.server.names()
    }
}

/// Waits for a message of any consumer.
async fn next_outcome(followers: &mut [Followed]) -> (usize, Message) {
    std::future::poll_fn(|context| {
        for (at, followed) in followers.iter_mut().enumerate() {
            if let Some(messages) = &mut followed.messages
                && let Poll::Ready(Some(message)) = messages.poll_next_unpin(context)
            {
                return Poll::Ready((at, message));
            }
        }
        Poll::Pending
    })
    .await
}

fn fail(task: &Submission, reason: &str) {
    task.target.fail(failure::disconnected(reason, task.target.label()));
    task.admit(Err(failure::not_submitted(reason)));
}
