//! The settings of a cluster, and its start.

use std::sync::Arc;
use std::thread;

use brigade_sys::random;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::oneshot;

use super::cluster::Cluster;
use super::driver::Driver;
use super::shared::{Command, Shared};
use crate::endpoint::Endpoint;
use crate::error::ClusterError;
use crate::names::Origin;
use crate::queue_options::{QueueOptions, impl_queue_options};
use crate::server::Server;
use crate::setup::QueueSettings;

/// The settings of a [`Cluster`]; created by [`Cluster::builder`].
///
/// Those of the queue count only for the first client or node, which creates it.
#[derive(Debug, Clone, Default)]
#[must_use = "a builder does nothing until it connects"]
pub struct ClusterBuilder {
    options: QueueOptions,
}

impl_queue_options!(ClusterBuilder);

brigade_sys::setters! {
    impl ClusterBuilder;

    /// Sets whether the queue is created if it does not exist. Otherwise that is an error. Default:
    /// `true`.
    pub fn create_queue(self, creates_queue: bool) {
        self.options.settings.creates = creates_queue;
    }
}

impl ClusterBuilder {
    /// Connects, and creates the queue if it does not exist.
    ///
    /// # Errors
    /// If the server cannot be reached or used, or the queue exists with settings that would break
    /// a promise.
    pub fn connect(self) -> Result<Cluster, ClusterError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let driver = self.start(move |result| drop(sender.send(result)))?;
        let shared = receiver.recv().map_err(|_| ended())??;
        Ok(Cluster { shared, driver: Some(driver) })
    }

    /// Connects like [`connect`](Self::connect), without blocking the thread. Works with any
    /// runtime.
    ///
    /// # Errors
    /// As `connect`.
    pub async fn connect_async(self) -> Result<Cluster, ClusterError> {
        let (sender, receiver) = oneshot::channel();
        let driver = self.start(move |result| drop(sender.send(result)))?;
        let shared = receiver.await.map_err(|_| ended())??;
        Ok(Cluster { shared, driver: Some(driver) })
    }

    /// Starts the thread of the driver, which reports that it has connected.
    fn start(
        self,
        report: impl FnOnce(Result<Arc<Shared>, ClusterError>) + Send + 'static,
    ) -> Result<thread::JoinHandle<()>, ClusterError> {
        let settings = self.options.settings()?;
        let names = settings.names.clone();
        let id = random::bytes::<8>().map(u64::from_le_bytes);
        let id = id.map_err(|error| ClusterError::system("make the id of the client", error))?;
        let origin = Origin::client(&format!("{id:016x}"))?;
        let endpoint = self.options.endpoint;
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = match runtime {
                Ok(runtime) => runtime,
                Err(error) => {
                    return report(Err(ClusterError::system("start the runtime", error)));
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
        thread.spawn(run).map_err(|error| ClusterError::system("start the driver", error))
    }
}

async fn open(
    endpoint: &Endpoint,
    settings: QueueSettings,
    shared: Arc<Shared>,
) -> Result<Driver, ClusterError> {
    let mut connection = endpoint.connect(&format!("brigade client {}", shared.origin)).await?;
    let client = connection.client.clone();
    let (server, last) = connection
        .permitted(async {
            let server = Server::open(client, settings).await?;
            let last = server.last_outcome().await?;
            Ok((server, last))
        })
        .await?;
    Driver::open(connection, server, shared, last).await
}

/// Returns the error of a driver that ended before it had connected, by a panic.
fn ended() -> ClusterError {
    ClusterError::system("connect", "the driver has ended")
}
