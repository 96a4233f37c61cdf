//! Connects a driver to the servers.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream;
use brigade_pool::Pool;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc::UnboundedReceiver;

use super::{Command, FIRST_SWEEP_PERIOD, NodeDriver};
use crate::clock::now;
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::error::ClusterError;
use crate::names::{Lane, Priority};
use crate::node::context::QueueContext;
use crate::node::functions::NodeFunctions;
use crate::node::machine::{Machine, Settings};
use crate::node::runs::Runs;
use crate::node::status::Shared;
use crate::publisher::Publisher;
use crate::requirements::{Class, Requirements};
use crate::setup::QueueSettings;

/// The tasks that a node takes of those that it could run.
#[derive(Debug, Clone)]
pub(in crate::node) struct NodeChoice {
    /// The label without which no task is taken.
    pub(in crate::node) only_label: Option<String>,
    /// `true` if brief tasks have a backlog.
    pub(in crate::node) has_backlog: bool,
}

/// The parts of a driver that others have made.
pub(in crate::node) struct Parts {
    pub(in crate::node) functions: NodeFunctions,
    pub(in crate::node) offer: Requirements,
    pub(in crate::node) choice: NodeChoice,
    pub(in crate::node) pool: Arc<Pool>,
    pub(in crate::node) shared: Arc<Shared>,
    pub(in crate::node) commands: UnboundedReceiver<Command>,
}

impl NodeDriver {
    /// Connects to the servers, and creates what is missing of the queue.
    pub(in crate::node) async fn connect(
        endpoint: &Endpoint,
        queue: QueueSettings,
        parts: Parts,
    ) -> Result<Self, ClusterError> {
        let mut connection = endpoint.connect(&parts.shared.name).await?;
        let jetstream = jetstream::new(connection.client.clone());
        let opening = async {
            let context = QueueContext::open(jetstream, queue).await?;
            let lane = Lane { priority: Priority::default(), class: Class::default() };
            let consumer = context.settings.ensure_lane(&context.jetstream, &lane).await?;
            Ok((context, consumer))
        };
        let (context, consumer) = connection.permitted(opening).await?;
        // Whoever created the lane has chosen the lease.
        let lease = consumer.cached_info().config.ack_wait;
        Self::new(connection, context, lease, parts).await
    }

    async fn new(
        connection: Connection,
        context: QueueContext,
        lease: Duration,
        parts: Parts,
    ) -> Result<Self, ClusterError> {
        let Parts { functions, offer, choice, pool, shared, commands } = parts;
        let NodeChoice { only_label, has_backlog } = choice;
        let client = connection.client.clone();
        let inbox = client.new_inbox();
        let names = context.names();
        let subscribe = async |subject: String| {
            let subscribed = client.subscribe(subject).await;
            subscribed.map_err(|error| ClusterError::server("subscribe", error))
        };
        let settings = Settings {
            name: shared.name.clone(),
            workers: u32::try_from(pool.workers()).unwrap_or(u32::MAX),
            resources: offer.resources().map(|(name, total)| (name.to_owned(), total)).collect(),
            lease,
            functions: functions.names(),
            has_backlog,
        };
        Ok(Self {
            publisher: Publisher::new(client.clone(), |_| false).await?,
            deliveries: subscribe(format!("{inbox}.*")).await?,
            cancellations: subscribe(names.cancel()).await?,
            new_lanes: subscribe(names.lanes()).await?,
            elections: subscribe(names.elections()).await?,
            status_requests: subscribe(names.status()).await?,
            inbox: format!("{inbox}."),
            received: 0,
            machine: Machine::new(settings, now()),
            runs: Runs::new(pool),
            jobs: FuturesUnordered::new(),
            held: HashMap::new(),
            events: VecDeque::new(),
            actions: Vec::new(),
            last_token: 0,
            next_sweep: now() + FIRST_SWEEP_PERIOD,
            sweep_period: FIRST_SWEEP_PERIOD,
            is_sweeping: false,
            done: BTreeSet::new(),
            is_closed: false,
            is_up: true,
            failure: None,
            connection,
            client,
            context,
            commands,
            functions,
            offer,
            only_label,
            shared,
        })
    }
}
