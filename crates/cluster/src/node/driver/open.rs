//! Connects a driver to the servers.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use brigade_pool::Pool;
use futures_util::stream::FuturesUnordered;

use super::{FIRST_SWEEP_PERIOD, NodeDriver};
use crate::clock::now;
use crate::endpoint::Endpoint;
use crate::error::ClusterError;
use crate::names::Lane;
use crate::node::functions::NodeFunctions;
use crate::node::machine::{Machine, Settings};
use crate::node::runs::Runs;
use crate::node::status::Shared;
use crate::publisher::Publisher;
use crate::requirements::Requirements;
use crate::server::Server;
use crate::setup::QueueSettings;

/// The tasks that a node can run, and those that it takes.
pub(in crate::node) struct NodeSettings {
    pub(in crate::node) functions: NodeFunctions,
    pub(in crate::node) offer: Requirements,
    /// The label without which no task is taken.
    pub(in crate::node) only_label: Option<String>,
    /// `true` if brief tasks have a backlog.
    pub(in crate::node) has_backlog: bool,
}

impl NodeDriver {
    /// Connects to the servers, and creates what is missing of the queue.
    pub(in crate::node) async fn connect(
        endpoint: &Endpoint,
        queue: QueueSettings,
        settings: NodeSettings,
        pool: Arc<Pool>,
        shared: Arc<Shared>,
    ) -> Result<Self, ClusterError> {
        let mut connection = endpoint.connect(&shared.name).await?;
        let client = connection.client.clone();
        let opening = async {
            let server = Server::open(client.clone(), queue).await?;
            let consumer = server.settings.ensure_lane(&server.jetstream, &Lane::default()).await?;
            Ok((server, consumer))
        };
        let (server, consumer) = connection.permitted(opening).await?;
        let inbox = client.new_inbox();
        let names = server.names();
        let subscribe = async |subject: String| {
            let subscribed = client.subscribe(subject).await;
            subscribed.map_err(|error| ClusterError::server("subscribe", error))
        };
        let offered = settings.offer.resources();
        let of_machine = Settings {
            name: shared.name.clone(),
            workers: u32::try_from(pool.workers()).unwrap_or(u32::MAX),
            resources: offered.map(|(name, total)| (name.to_owned(), total)).collect(),
            // Whoever created the lane has chosen it.
            lease: consumer.cached_info().config.ack_wait,
            functions: settings.functions.names(),
            has_backlog: settings.has_backlog,
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
            machine: Machine::new(of_machine, now()),
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
            server,
            settings,
            shared,
        })
    }
}
