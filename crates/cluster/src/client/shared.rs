//! The state that callers, handles and the driver share.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use brigade_sys::fork::Origin as Process;
use brigade_task::backend::Callbacks;
use tokio::sync::mpsc::UnboundedSender;

use super::machine::Ticket;
use super::map::ItemTimes;
use super::record::Encoded;
use super::submission::Submission;
use super::window::SubmissionWindow;
use crate::error::ClusterError;
use crate::names::{Names, Origin};
use crate::server::Server;

/// Publications whose answer is outstanding, at most. More do not make the server faster.
pub(super) const WINDOW: usize = 1024;

/// The state that callers, handles and the driver share.
pub(super) struct Shared {
    pub(super) names: Names,
    /// The origin of tasks outside of batches.
    pub(super) origin: Origin,
    pub(super) window: SubmissionWindow,
    pub(super) callbacks: Arc<Callbacks<Encoded>>,
    /// Run times that maps have learned.
    pub(super) run_times: ItemTimes,
    commands: UnboundedSender<Command>,
    next_ticket: AtomicU64,
    /// `false` while the link to the server is down.
    is_up: AtomicBool,
    process: Process,
}

/// A job on the driver's thread.
pub(super) type LocalJob = Pin<Box<dyn Future<Output = ()>>>;

/// A request to the driver.
pub(super) enum Command {
    Submit(Box<Submission>),
    /// Cancel or kill a task.
    End {
        ticket: Ticket,
        kill: bool,
    },
    /// Follow the outcomes of a batch from behind a sequence. These items have outcomes already.
    Follow {
        origin: Origin,
        behind: u64,
        done: Vec<String>,
    },
    /// Run a job that needs the server.
    Run(Box<dyn FnOnce(Server) -> LocalJob + Send>),
    Close,
}

impl Shared {
    pub(super) fn new(names: Names, origin: Origin, commands: UnboundedSender<Command>) -> Self {
        Self {
            origin,
            window: SubmissionWindow::new(WINDOW),
            callbacks: Callbacks::new(format!("cluster {}", names.queue())),
            run_times: ItemTimes::default(),
            commands,
            next_ticket: AtomicU64::new(0),
            is_up: AtomicBool::new(true),
            process: Process::here(),
            names,
        }
    }

    /// Returns the number of the next submission.
    pub(super) fn next_ticket(&self) -> Ticket {
        self.next_ticket.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a request. Returns `false` if the driver has ended.
    pub(super) fn send(&self, command: Command) -> bool {
        self.commands.send(command).is_ok()
    }

    pub(super) fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    /// Sets whether the link is up, and returns whether it was.
    pub(super) fn set_up(&self, is_up: bool) -> bool {
        self.is_up.swap(is_up, Ordering::Relaxed)
    }

    /// Returns `true` in a fork of the process that connected: it has no driver.
    pub(super) fn is_forked(&self) -> bool {
        !self.process.is_here()
    }

    /// Runs a job on the driver's thread. The receiver is disconnected if the driver has ended.
    pub(super) fn run<T, F>(
        self: &Arc<Self>,
        job: impl FnOnce(Server) -> F + Send + 'static,
    ) -> std::sync::mpsc::Receiver<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let run = move |server: Server| -> LocalJob {
            let job = job(server);
            Box::pin(async move {
                // The caller may have lost interest.
                let _ = sender.send(job.await);
            })
        };
        self.send(Command::Run(Box::new(run)));
        receiver
    }

    /// Runs a job on the driver's thread, and blocks until it is done.
    pub(super) fn ask<T: Send + 'static, F: Future<Output = Result<T, ClusterError>> + 'static>(
        self: &Arc<Self>,
        operation: &'static str,
        job: impl FnOnce(Server) -> F + Send + 'static,
    ) -> Result<T, ClusterError> {
        let closed = |_| ClusterError::system(operation, "the cluster was closed");
        self.run(job).recv().map_err(closed)?
    }
}

brigade_sys::debug_fields!(impl Shared { origin, window });
