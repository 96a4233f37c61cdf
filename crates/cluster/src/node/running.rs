//! A node at work, and its thread.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use brigade_codec::chain;
use brigade_pool::{Pool, Shutdown};
use brigade_status::StatusServer;
use brigade_sys::random;
use std::sync::mpsc::channel;
use tokio::runtime::{self, Runtime};
#[cfg(unix)]
use tokio::signal::unix::{Signal as Interrupt, Signal as Terminate, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlBreak as Terminate, CtrlC as Interrupt, ctrl_break, ctrl_c};

use super::builder::{Node, NodeBuilder};
use super::driver::{NodeDriver, NodeSettings};
use super::status::Shared;
use crate::error::ClusterError;
use crate::message::NodeStatus;

/// Time for which a killed pool is waited for.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// A node that was started. Dropping it drains the node and waits for its end.
pub struct RunningNode {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<(), ClusterError>>>,
    live_view: Option<StatusServer>,
}

impl RunningNode {
    pub(super) fn start(builder: NodeBuilder) -> Result<Self, ClusterError> {
        let queue = builder.check()?;
        let host = builder.name.clone().unwrap_or_else(Node::host_name);
        let name = builder.name.clone().unwrap_or_else(|| unique_name(&host));
        let NodeBuilder {
            options,
            functions,
            pool,
            mut offer,
            only_label,
            has_backlog,
            handles_signals,
            status_address,
            ..
        } = builder;
        let endpoint = options.endpoint;
        let pool = Arc::new(pool.build()?);
        for (name, resource) in pool.resources() {
            offer.add_resource(name.to_owned(), resource.total());
        }
        let live_view = status_address.map(|address| serve_status(&address, &pool, &name));
        let live_view = live_view.transpose()?;
        let workers = u32::try_from(pool.workers()).unwrap_or(u32::MAX);
        let shared = Shared::new((name, host), workers, offer.to_string(), functions.names());
        let shared = Arc::new(shared);
        let settings = NodeSettings { functions, offer, only_label, has_backlog };
        let (opened, is_open) = channel();
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| ClusterError::system("start a runtime", error))?;
        let of_thread = Arc::clone(&shared);
        let run = move || {
            let open = async {
                let (pool, shared) = (Arc::clone(&pool), Arc::clone(&of_thread));
                let driver = NodeDriver::connect(&endpoint, queue, settings, pool, shared).await?;
                let signals = handles_signals.then(Signals::new).transpose()?;
                Ok::<_, ClusterError>((driver, signals))
            };
            let (driver, signals) = runtime.block_on(open)?;
            let _ = opened.send(());
            work(&runtime, driver, signals, of_thread, &pool)
        };
        let thread = thread::Builder::new().name("brigade-node".to_owned()).spawn(run);
        let thread =
            thread.map_err(|error| ClusterError::system("start the thread of a node", error))?;
        let mut node = Self { shared, thread: Some(thread), live_view };
        if is_open.recv().is_err() {
            // The thread has ended with an error, or panicked.
            node.wait()?;
        }
        Ok(node)
    }

    /// Returns the name of the node.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Returns the current state of the node.
    pub fn status(&self) -> NodeStatus {
        self.shared.status()
    }

    /// Returns the address of the live view, if there is one.
    pub fn status_addr(&self) -> Option<SocketAddr> {
        self.live_view.as_ref().map(StatusServer::addr)
    }

    /// Lets the node finish what runs and hand back what has not begun. Returns at once; the node
    /// ends when that is done.
    pub fn drain(&self) {
        self.shared.drain.notify_one();
    }

    /// Blocks until the node has ended, by [`drain`](Self::drain) or because its pool is broken.
    ///
    /// # Errors
    /// If the local pool could not run tasks.
    pub fn join(mut self) -> Result<NodeStatus, ClusterError> {
        self.wait()?;
        Ok(self.shared.status())
    }

    fn wait(&mut self) -> Result<(), ClusterError> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread
            .join()
            .unwrap_or_else(|_| Err(ClusterError::system("run a node", "its thread has panicked")))
    }
}

impl Drop for RunningNode {
    fn drop(&mut self) {
        self.drain();
        if let Err(error) = self.wait() {
            tracing::error!(node = self.name(), error = chain(&error), "the node has failed");
        }
    }
}

brigade_sys::debug_fields!(impl RunningNode { |it| status: it.status() });

/// Serves the pool of a node, whose metrics carry the name of the node.
fn serve_status(address: &str, pool: &Pool, node: &str) -> Result<StatusServer, ClusterError> {
    let server = StatusServer::builder().node(node).serve(address, pool.status_source());
    server.map_err(|error| ClusterError::Configuration {
        field: "serve_status",
        problem: chain(&error),
    })
}

/// The signals that end a node.
struct Signals {
    terminate: Terminate,
    interrupt: Interrupt,
}

impl Signals {
    fn new() -> Result<Self, ClusterError> {
        let problem = |error| ClusterError::system("listen to signals", error);
        #[cfg(unix)]
        let (terminate, interrupt) =
            (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
        #[cfg(windows)]
        let (terminate, interrupt) = (ctrl_break(), ctrl_c());
        Ok(Self { terminate: terminate.map_err(problem)?, interrupt: interrupt.map_err(problem)? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Runs the driver and then ends the pool.
fn work(
    runtime: &Runtime,
    driver: NodeDriver,
    signals: Option<Signals>,
    shared: Arc<Shared>,
    pool: &Arc<Pool>,
) -> Result<(), ClusterError> {
    if let Some(mut signals) = signals {
        let pool = Arc::clone(pool);
        runtime.spawn(async move {
            signals.next().await;
            shared.drain.notify_one();
            signals.next().await;
            tracing::warn!("a second signal: what runs is killed");
            // Blocks for up to the timeout, and the driver must go on.
            thread::spawn(move || {
                let _ = pool.shutdown_with(Shutdown::Kill, KILL_TIMEOUT);
            });
        });
    }
    let result = runtime.block_on(driver.run());
    let shutdown = pool.shutdown();
    result?;
    shutdown?;
    Ok(())
}

/// Returns a name that no other node has.
fn unique_name(host: &str) -> String {
    let unique = random::bytes::<4>().map(u32::from_le_bytes).unwrap_or_default();
    format!("{host}-{}-{unique:08x}", std::process::id())
}
