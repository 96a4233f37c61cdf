//! The state of a whole queue, for people and for their tools.

use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::jetstream::{self, stream::Stream};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use tokio::time::timeout_at;

use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::error::ClusterError;
use crate::message::NodeStatus;
use crate::names::{Names, Queue};

/// The time in which nodes have to answer, and over which rates are measured. Nobody knows the
/// number of nodes, so the time is always waited for.
const PERIOD: Duration = Duration::from_secs(1);

/// The state of a queue and its nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClusterStatus {
    /// Name of the queue.
    pub queue: String,
    /// The nodes that have answered, by name.
    pub nodes: Vec<NodeStatus>,
    /// The lanes: tasks of one priority and the same requirements.
    pub lanes: Vec<LaneStatus>,
    /// Number of tasks that are not done. The items of a chunk count as one.
    pub tasks: u64,
    /// Number of outcomes that are kept.
    pub outcomes: u64,
    /// Number of dead letters.
    pub dead_letters: u64,
    /// Tasks submitted in the last second.
    pub submitted_per_second: f64,
    /// Outcomes recorded in the last second.
    pub recorded_per_second: f64,
}

/// The tasks of one lane.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LaneStatus {
    /// Name of the lane: the requirements and the priority.
    pub name: String,
    /// Number of tasks that wait for a node.
    pub waiting: u64,
    /// Number of tasks that nodes hold.
    pub held: u64,
}

impl ClusterStatus {
    /// Asks the server and all nodes of a queue, which takes a second. Creates nothing.
    ///
    /// # Errors
    /// If the server cannot be reached, or does not have the queue.
    pub fn fetch(endpoint: &Endpoint, queue: &str) -> Result<Self, ClusterError> {
        ClusterMonitor::connect(endpoint, queue)?.fetch()
    }

    /// Returns the number of workers of all nodes.
    pub fn workers(&self) -> u64 {
        self.nodes.iter().map(|node| u64::from(node.workers)).sum()
    }
}

/// A connection over which the state of a queue is fetched again and again.
pub struct ClusterMonitor {
    runtime: Runtime,
    connection: Connection,
    names: Names,
}

impl ClusterMonitor {
    /// Connects to the server.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub fn connect(endpoint: &Endpoint, queue: &str) -> Result<Self, ClusterError> {
        let names = Names::new(queue.parse::<Queue>()?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| ClusterError::system("start a runtime", error))?;
        let connection = runtime.block_on(endpoint.connect("brigade status"))?;
        Ok(Self { runtime, connection, names })
    }

    /// Asks the server and all nodes, once, which takes a second. So a loop without a pause sends
    /// one request a second. After an error it may be called again: the connection comes back by
    /// itself.
    ///
    /// # Errors
    /// If the server does not answer, or does not have the queue.
    pub fn fetch(&mut self) -> Result<ClusterStatus, ClusterError> {
        let queue = self.names.queue().as_str();
        let client = self.connection.client.clone();
        let fetch = self.connection.permitted(fetch(&client, &self.names, queue));
        self.runtime.block_on(fetch)
    }
}

brigade_sys::debug_fields!(impl ClusterMonitor { |it| queue: it.names.queue() });

async fn fetch(client: &Client, names: &Names, queue: &str) -> Result<ClusterStatus, ClusterError> {
    let jetstream = jetstream::new(client.clone());
    let find = async |name: String| {
        let found = jetstream.get_stream(name).await;
        found.map_err(|error| {
            ClusterError::server(
                "find the queue: check that a client or node has created it",
                error,
            )
        })
    };
    let (mut tasks, mut outcomes) =
        (find(names.tasks_stream()).await?, find(names.outcomes_stream()).await?);
    let history = find(names.history_stream()).await?;
    let before = (last_sequence(&mut tasks).await?, last_sequence(&mut outcomes).await?);
    let began = Instant::now();
    let nodes = nodes(client, names).await?;
    let after = (last_sequence(&mut tasks).await?, last_sequence(&mut outcomes).await?);
    let seconds = began.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate need not be exact")]
    let rate = |before: u64, after: u64| after.saturating_sub(before) as f64 / seconds;
    let mut lanes: Vec<_> = tasks
        .consumers()
        .map_ok(|info| LaneStatus {
            name: info.name,
            waiting: info.num_pending,
            held: info.num_ack_pending as u64,
        })
        .try_collect()
        .await
        .map_err(|error| ClusterError::server("list the lanes", error))?;
    lanes.sort_by(|one, other| one.name.cmp(&other.name));
    let failed = |error| ClusterError::server("count the dead letters", error);
    let dead = history.info_with_subjects(names.all("dead")).await.map_err(failed)?;
    let dead_letters = dead
        .try_fold(0, |sum, (_, count)| async move { Ok(sum + count as u64) })
        .await
        .map_err(failed)?;
    Ok(ClusterStatus {
        queue: queue.to_owned(),
        nodes,
        lanes,
        tasks: tasks.cached_info().state.messages,
        outcomes: outcomes.cached_info().state.messages,
        dead_letters,
        submitted_per_second: rate(before.0, after.0),
        recorded_per_second: rate(before.1, after.1),
    })
}

async fn last_sequence(stream: &mut Stream) -> Result<u64, ClusterError> {
    let info = stream.info().await;
    let info = info.map_err(|error| ClusterError::server("look at a stream", error))?;
    Ok(info.state.last_sequence)
}

/// Asks all nodes for their status, and returns the messages that arrive in `period`.
pub(crate) async fn answers(
    client: &Client,
    names: &Names,
    period: Duration,
) -> Result<Vec<Bytes>, ClusterError> {
    let inbox = client.new_inbox();
    let subscription = client.subscribe(inbox.clone()).await;
    let mut messages =
        subscription.map_err(|error| ClusterError::server("receive the answers", error))?;
    let asked = client.publish_with_reply(names.status(), inbox, Vec::new().into()).await;
    asked.map_err(|error| ClusterError::server("ask the nodes", error))?;
    let end = tokio::time::Instant::now() + period;
    let mut answers = Vec::new();
    while let Ok(Some(answer)) = timeout_at(end, messages.next()).await {
        // The server says so if there are no nodes.
        if !answer.payload.is_empty() {
            answers.push(answer.payload);
        }
    }
    Ok(answers)
}

/// Asks all nodes, and returns the answers of the next second. Those of programs of another version
/// are left out.
async fn nodes(client: &Client, names: &Names) -> Result<Vec<NodeStatus>, ClusterError> {
    let mut nodes = Vec::new();
    for answer in answers(client, names, PERIOD).await? {
        match NodeStatus::from_bytes(&answer) {
            Ok(node) => nodes.push(node),
            Err(error) => tracing::warn!(%error, "a node's answer was not understood"),
        }
    }
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(nodes)
}
