//! The builder of a node.

use brigade_pool::{Encoded, Key, Pool, PoolBuilder, Resource};

use super::functions::NodeFunctions;
use super::running::RunningNode;
use crate::error::ClusterError;
use crate::message::NodeStatus;
use crate::queue_options::{QueueOptions, impl_queue_options};
use crate::requirements::Requirements;
use crate::setup::QueueSettings;

/// A machine's share in a cluster: takes tasks from the queue, runs them in a local pool, and
/// records their outcomes.
///
/// ```no_run
/// use brigade::Key;
/// use brigade_cluster::Node;
///
/// static LENGTH: Key<String, usize> = Key::new("length/1", |text: String| text.len());
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     brigade::init();
///     Node::builder().url("nats://127.0.0.1:4222").register(&LENGTH).workers(8).run()?;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Node;

impl Node {
    /// Returns a builder. Without further settings, the node connects to the servers of `NATS_URL`,
    /// or to one on this machine, with the login that the environment describes; see
    /// [`Endpoint::from_env`](crate::Endpoint::from_env).
    pub fn builder() -> NodeBuilder {
        NodeBuilder {
            options: QueueOptions::default(),
            name: None,
            functions: NodeFunctions::default(),
            duplicate: None,
            pool: Pool::builder(),
            offer: Requirements::new(),
            only_label: None,
            has_backlog: true,
            status_address: None,
            handles_signals: false,
        }
    }

    /// Returns the name of this machine, as nodes without a name of their own report it.
    pub fn host_name() -> String {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        match host.trim() {
            "" => "node".to_owned(),
            host => host.to_owned(),
        }
    }
}

/// Builds a [`Node`].
#[must_use = "a builder does nothing until `run` or `start`"]
pub struct NodeBuilder {
    pub(super) options: QueueOptions,
    pub(super) name: Option<String>,
    pub(super) functions: NodeFunctions,
    /// Name of a function that was registered twice.
    pub(super) duplicate: Option<&'static str>,
    pub(super) pool: PoolBuilder,
    pub(super) offer: Requirements,
    /// The label without which no task is taken.
    pub(super) only_label: Option<String>,
    /// `true` if brief tasks have a backlog.
    pub(super) has_backlog: bool,
    pub(super) status_address: Option<String>,
    pub(super) handles_signals: bool,
}

impl_queue_options!(NodeBuilder);

impl NodeBuilder {
    /// Lets the node run the tasks of a function.
    pub fn register<A, R>(mut self, task: &Key<A, R>) -> Self {
        self.add(task);
        self
    }
}

brigade_sys::setters! {
    impl NodeBuilder;

    /// Lets the node run the tasks of a function by its name, which the worker program has
    /// registered; see [`PoolBuilder::worker_command`].
    ///
    /// # Panics
    /// As [`Key::named`].
    pub fn register_name(self, name: impl Into<String>) {
        // Names are as few as functions, and live as long.
        let name: &'static str = Box::leak(name.into().into_boxed_str());
        self.add(&Key::<Encoded, Encoded>::named(name));
    }

    /// Sets the settings of the local pool. Replaces [`workers`](Self::workers) and
    /// [`cores_per_worker`](Self::cores_per_worker), if they were called before.
    pub fn pool(self, pool: PoolBuilder) { self.pool = pool }

    /// Sets the number of workers. Default: the number of cores that this process may use.
    pub fn workers(self, workers: usize) { self.pool = self.pool.workers(workers) }

    /// Pins each worker to this number of cores of its own, and takes tasks that need as many.
    pub fn cores_per_worker(self, cores: usize) {
        self.pool = self.pool.cores_per_worker(cores);
        self.offer = self.offer.with_cores(u32::try_from(cores).unwrap_or(u32::MAX));
    }

    /// Declares a resource of the node, of which its tasks take what they
    /// [need](crate::ClusterTask::needs); see [`PoolBuilder::resource`]. The node takes no more
    /// tasks from the queue than it has resources for.
    pub fn resource(self, name: impl Into<String>, resource: Resource) {
        self.pool = self.pool.resource(name, resource);
    }

    /// Takes tasks that need up to this amount of memory for their worker. Default: 0, which
    /// means only tasks that name no amount.
    pub fn memory_gib(self, memory_gib: u32) { self.offer = self.offer.memory_gib(memory_gib) }

    /// Takes tasks that need this label.
    pub fn label(self, label: impl Into<String>) { self.offer = self.offer.label(label) }

    /// Takes only tasks that need this label.
    pub fn only_label(self, label: impl Into<String>) {
        let label = label.into();
        self.only_label = Some(label.clone());
        self.offer = self.offer.label(label);
    }

    /// Holds no more tasks than there are workers, however brief they are. Use it if past
    /// run times say nothing about that of the next task.
    pub fn without_backlog(self) { self.has_backlog = false }

    /// Sets the name, which must be unique. Default: the host's name, the process id and a random
    /// number.
    pub fn name(self, name: impl Into<String>) { self.name = Some(name.into()) }

    /// Serves a live view of the local pool at a loopback address, as
    /// [`Pool::serve_status`](brigade_pool::Pool::serve_status) does. Its metrics have the label
    /// `node` with the name of the node.
    pub fn serve_status(self, address: impl Into<String>) {
        self.status_address = Some(address.into());
    }
}

impl NodeBuilder {
    fn add<A, R>(&mut self, task: &Key<A, R>) {
        let name = task.name();
        if !self.functions.add(task) {
            self.duplicate = Some(name);
        }
    }

    /// Checks what is set, and returns the settings of the queue.
    pub(super) fn check(&self) -> Result<QueueSettings, ClusterError> {
        let wrong = |problem| Err(ClusterError::Configuration { field: "register", problem });
        if let Some(name) = self.duplicate {
            return wrong(format!("two functions have the name `{name}`"));
        }
        if self.functions.is_empty() {
            return wrong("the node has no function; register at least one".to_owned());
        }
        self.offer.class()?;
        self.options.settings()
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
}

brigade_sys::debug_fields! {
    impl NodeBuilder { options, functions }
}
