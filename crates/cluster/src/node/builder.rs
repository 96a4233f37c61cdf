//! The builder of a node.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use brigade_pool::{Encoded, Pool, PoolBuilder, Task};

use super::functions::Functions;
use super::running::RunningNode;
use crate::connection::Endpoint;
use crate::error::ClusterError;
use crate::message::NodeStatus;
use crate::names::{Names, Queue};
use crate::needs::Needs;
use crate::setup::QueueSettings;

/// A machine's share in a cluster: takes tasks from the queue, runs them in a local pool, and
/// records their outcomes.
///
/// ```no_run
/// use brigade::Task;
/// use brigade_cluster::Node;
///
/// static LENGTH: Task<String, usize> = Task::new("length/1", |text: String| text.len());
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     brigade::init();
///     Node::builder("nats://127.0.0.1:4222").register(&LENGTH).workers(8).run()?;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Node;

impl Node {
    /// Returns the builder of a node that connects to the servers at `urls`, which are separated by
    /// commas.
    pub fn builder(urls: impl Into<String>) -> NodeBuilder {
        NodeBuilder::new(Endpoint::at(urls))
    }

    /// Returns the builder of a node that connects to the servers in `NATS_URL`, with the
    /// credentials in `NATS_CREDS` and the certificates in `NATS_CA`.
    pub fn from_env() -> NodeBuilder {
        NodeBuilder::new(Endpoint::from_env())
    }
}

/// Builds a [`Node`].
#[must_use = "a builder does nothing until `run` or `start`"]
pub struct NodeBuilder {
    pub(super) endpoint: Endpoint,
    pub(super) name: Option<String>,
    pub(super) queue: String,
    pub(super) functions: Functions,
    /// Name of a function that was registered twice.
    pub(super) duplicate: Option<&'static str>,
    pub(super) pool: PoolBuilder,
    pub(super) offer: Needs,
    pub(super) replicas: usize,
    pub(super) max_tasks: Option<u32>,
    pub(super) outcome_life: Option<Duration>,
    pub(super) lease: Option<Duration>,
    pub(super) status_address: Option<String>,
    pub(super) handles_signals: bool,
}

impl NodeBuilder {
    fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            name: None,
            queue: Queue::default().as_str().to_owned(),
            functions: Functions::default(),
            duplicate: None,
            pool: Pool::builder(),
            offer: Needs::new(),
            replicas: 1,
            max_tasks: None,
            outcome_life: None,
            lease: None,
            status_address: None,
            handles_signals: false,
        }
    }

    /// Lets the node run the tasks of a function.
    pub fn register<A, R>(mut self, task: &Task<A, R>) -> Self {
        self.add(task.erase());
        self
    }

    /// Lets the node run the tasks of a function by its name, which the worker program has
    /// registered; see [`PoolBuilder::worker_command`].
    ///
    /// # Panics
    /// As [`Task::named`].
    pub fn register_name(mut self, name: impl Into<String>) -> Self {
        // Names are as few as functions, and live as long.
        let name: &'static str = Box::leak(name.into().into_boxed_str());
        self.add(Task::<Encoded, Encoded>::named(name));
        self
    }

    fn add(&mut self, task: Task<Encoded, Encoded>) {
        let name = task.name();
        if !self.functions.add(task) {
            self.duplicate = Some(name);
        }
    }

    /// Sets the settings of the local pool. Replaces [`workers`](Self::workers) and
    /// [`cores_per_worker`](Self::cores_per_worker), if they were called before.
    pub fn pool(mut self, pool: PoolBuilder) -> Self {
        self.pool = pool;
        self
    }

    /// Sets the number of workers. Default: the number of cores that this process may use.
    pub fn workers(mut self, workers: usize) -> Self {
        self.pool = self.pool.workers(workers);
        self
    }

    /// Pins each worker to this number of cores of its own, and takes tasks that need as many.
    pub fn cores_per_worker(mut self, cores: usize) -> Self {
        self.pool = self.pool.cores_per_worker(cores);
        self.offer = self.offer.with_cores(u32::try_from(cores).unwrap_or(u32::MAX));
        self
    }

    /// Takes tasks that need up to this amount of memory for their worker. Default: 0, which
    /// means only tasks that name no amount.
    pub fn memory_gib(mut self, memory_gib: u32) -> Self {
        self.offer = self.offer.memory_gib(memory_gib);
        self
    }

    /// Takes tasks that need this label.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.offer = self.offer.label(label);
        self
    }

    /// Sets the name, which must be unique. Default: the host's name, the process id and a random
    /// number.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the name of the queue. Default: `default`.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = queue.into();
        self
    }

    /// Sets the time after which the tasks of a silent node are run elsewhere. Default: 10 s.
    ///
    /// A property of the queue: the first node or client sets it.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Sets the number of servers that store each message. Default: 1.
    ///
    /// A property of the queue: the first node or client sets it.
    pub fn replicas(mut self, replicas: usize) -> Self {
        self.replicas = replicas;
        self
    }

    /// Sets the maximum number of tasks that are not done. Default: 1,000,000.
    ///
    /// A property of the queue: the first node or client sets it.
    pub fn max_tasks(mut self, tasks: u32) -> Self {
        self.max_tasks = Some(tasks);
        self
    }

    /// Sets the time for which outcomes are kept. Default: 24 hours.
    ///
    /// A property of the queue: the first node or client sets it.
    pub fn outcome_life(mut self, life: Duration) -> Self {
        self.outcome_life = Some(life);
        self
    }

    /// Serves a live view of the local pool at a loopback address, as
    /// [`Pool::serve_status`](brigade_pool::Pool::serve_status) does. Its metrics have the label
    /// `node` with the name of the node.
    pub fn serve_status(mut self, address: impl Into<String>) -> Self {
        self.status_address = Some(address.into());
        self
    }

    /// Logs in with the credentials in a file.
    pub fn credentials_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.endpoint.set_credentials_file(path);
        self
    }

    /// Logs in with a token.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.endpoint.set_token(token);
        self
    }

    /// Requires TLS, and trusts the certificates in a file in addition to those of the system.
    pub fn root_certificates(mut self, path: impl Into<PathBuf>) -> Self {
        self.endpoint.set_root_certificates(path);
        self
    }

    /// Requires TLS, and identifies this node by a certificate.
    pub fn client_certificate(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.endpoint.set_client_certificate(certificate, key);
        self
    }

    /// Requires TLS.
    pub fn require_tls(mut self) -> Self {
        self.endpoint.require_tls();
        self
    }

    /// Runs the node until SIGTERM or SIGINT, then drains it: what runs is finished, what has not
    /// begun is handed back. A second signal kills what runs.
    ///
    /// # Errors
    /// If the server cannot be used, or the local pool cannot run tasks.
    pub fn run(mut self) -> Result<NodeStatus, ClusterError> {
        self.handles_signals = true;
        self.start()?.join()
    }

    /// Starts the node in a thread of its own, and returns once it is connected.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn start(self) -> Result<RunningNode, ClusterError> {
        RunningNode::start(self)
    }

    pub(super) fn queue_settings(&self) -> Result<QueueSettings, ClusterError> {
        let queue: Queue = self.queue.parse()?;
        let mut settings = QueueSettings::new(Names::new(queue));
        settings.replicas = self.replicas;
        if let Some(tasks) = self.max_tasks {
            settings.max_tasks = tasks.into();
        }
        if let Some(life) = self.outcome_life {
            settings.outcome_life = life;
        }
        if let Some(lease) = self.lease {
            settings.lease = lease;
        }
        Ok(settings)
    }
}

impl fmt::Debug for NodeBuilder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("NodeBuilder")
            .field("endpoint", &self.endpoint)
            .field("queue", &self.queue)
            .field("functions", &self.functions)
            .finish_non_exhaustive()
    }
}
