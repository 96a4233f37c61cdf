//! The settings of a cluster, and its start.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use brigade_sys::random;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::oneshot;

use super::cluster::Cluster;
use super::driver::Driver;
use super::server::Server;
use super::shared::{Command, Shared};
use crate::connection::Endpoint;
use crate::error::ClusterError;
use crate::names::{Names, Origin, Queue};
use crate::setup::QueueSettings;

/// The settings of a [`Cluster`]; created by [`Cluster::builder`].
///
/// Those of the queue count only for the first client or node, which creates it.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it connects"]
pub struct ClusterBuilder {
    endpoint: Endpoint,
    queue: String,
    replicas: usize,
    max_tasks: u32,
    outcome_life: Duration,
    lease: Option<Duration>,
    creates_queue: bool,
}

impl Default for ClusterBuilder {
    fn default() -> Self {
        let settings = QueueSettings::new(Names::new(Queue::default()));
        Self {
            endpoint: Endpoint::from_env(),
            queue: Queue::default().to_string(),
            replicas: settings.replicas,
            max_tasks: u32::try_from(settings.max_tasks).unwrap_or(u32::MAX),
            outcome_life: settings.outcome_life,
            lease: None,
            creates_queue: true,
        }
    }
}

impl ClusterBuilder {
    /// Sets the URLs of the servers, separated by commas. Default: `NATS_URL`, or
    /// `nats://127.0.0.1:4222`.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.endpoint.set_urls(url);
        self
    }

    /// Sets the name of the queue. Default: `default`.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = queue.into();
        self
    }

    /// Sets the file with the credentials of NATS. Default: `NATS_CREDS`.
    pub fn credentials_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.endpoint.set_credentials_file(path);
        self
    }

    /// Sets the token that the server asks for.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.endpoint.set_token(token);
        self
    }

    /// Sets the file with the certificates of the servers' authority, and requires TLS. Default:
    /// `NATS_CA`.
    pub fn root_certificates(mut self, path: impl Into<PathBuf>) -> Self {
        self.endpoint.set_root_certificates(path);
        self
    }

    /// Sets the files with the certificate and the key of this client, and requires TLS.
    pub fn client_certificate(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.endpoint.set_client_certificate(certificate, key);
        self
    }

    /// Refuses servers without TLS.
    pub fn require_tls(mut self) -> Self {
        self.endpoint.require_tls();
        self
    }

    /// Sets the number of servers that store each message, if the queue does not exist. Default: 1.
    pub fn replicas(mut self, replicas: usize) -> Self {
        self.replicas = replicas;
        self
    }

    /// Sets the maximum number of tasks that are not done, if the queue does not exist. Default:
    /// 1,000,000.
    pub fn max_tasks(mut self, tasks: u32) -> Self {
        self.max_tasks = tasks;
        self
    }

    /// Sets the period for which outcomes are kept, if the queue does not exist. Default: 24 h.
    pub fn outcome_life(mut self, life: Duration) -> Self {
        self.outcome_life = life;
        self
    }

    /// Sets the time after which a silent node has lost its tasks, if the queue does not exist.
    /// Default: 10 s.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Sets whether the queue is created if it does not exist. Otherwise that is an error. Default:
    /// `true`.
    pub fn create_queue(mut self, creates_queue: bool) -> Self {
        self.creates_queue = creates_queue;
        self
    }

    /// Connects, and creates the queue if it does not exist.
    ///
    /// # Errors
    /// If the server cannot be reached or used, or the queue exists with settings that would break
    /// a promise.
    pub fn connect(self) -> Result<Cluster, ClusterError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let driver = self.start(move |result| {
            let _ = sender.send(result);
        })?;
        let shared = receiver.recv().map_err(|_| ended())??;
        Ok(Cluster::new(shared, driver))
    }

    /// Connects like [`connect`](Self::connect), without blocking the thread. Works with any
    /// runtime.
    ///
    /// # Errors
    /// As `connect`.
    pub async fn connect_async(self) -> Result<Cluster, ClusterError> {
        let (sender, receiver) = oneshot::channel();
        let driver = self.start(move |result| {
            let _ = sender.send(result);
        })?;
        let shared = receiver.await.map_err(|_| ended())??;
        Ok(Cluster::new(shared, driver))
    }

    /// Starts the thread of the driver, which reports that it has connected.
    fn start(
        self,
        report: impl FnOnce(Result<Arc<Shared>, ClusterError>) + Send + 'static,
    ) -> Result<thread::JoinHandle<()>, ClusterError> {
        let names = Names::new(self.queue.parse()?);
        let mut settings = QueueSettings::new(names.clone());
        settings.creates = self.creates_queue;
        settings.replicas = self.replicas;
        settings.max_tasks = i64::from(self.max_tasks);
        settings.outcome_life = self.outcome_life;
        settings.lease = self.lease.unwrap_or(settings.lease);
        let id = random::bytes::<8>().map(u64::from_le_bytes);
        let id = id.map_err(|error| ClusterError::server("make the id of the client", &error))?;
        let origin = Origin::client(&format!("{id:016x}"))?;
        let endpoint = self.endpoint;
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = match runtime {
                Ok(runtime) => runtime,
                Err(error) => {
                    return report(Err(ClusterError::server("start the runtime", &error)));
                }
            };
            runtime.block_on(async move {
                let (sender, commands) = unbounded_channel::<Command>();
                let shared = Arc::new(Shared::new(names, origin, sender));
                match open(&endpoint, settings, Arc::clone(&shared)).await {
                    Ok(driver) => {
                        report(Ok(shared));
                        driver.run(commands).await;
                    }
                    Err(error) => report(Err(error)),
                }
            });
        };
        let thread = thread::Builder::new().name("brigade-cluster".to_owned());
        thread.spawn(run).map_err(|error| ClusterError::server("start the driver", &error))
    }
}

async fn open(
    endpoint: &Endpoint,
    settings: QueueSettings,
    shared: Arc<Shared>,
) -> Result<Driver, ClusterError> {
    let connection = endpoint.connect(&format!("brigade client {}", shared.origin)).await?;
    let server = Server::open(connection.client.clone(), settings).await?;
    Driver::open(connection, server, shared).await
}

/// Returns the error of a driver that ended before it had connected, by a panic.
fn ended() -> ClusterError {
    let reason = "the driver has ended".to_owned();
    ClusterError::Server { operation: "connect", reason }
}
