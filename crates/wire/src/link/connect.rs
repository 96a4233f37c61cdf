//! Links that are opened in the handshake, by a crate that neither worker nor pool depends on.
//!
//! Rings exist as soon as the worker has answered. Any other link has a *connector* at each end:
//! the worker creates a server in a folder, the host connects to it and hands over the worker's
//! ends of the link. See [`handshake`](crate::handshake) for the sequence.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::{LinkReceiver, LinkSender};
use crate::handshake::{LinkKind, Token};

/// Opens the host's end of one kind of link.
pub trait HostConnector: fmt::Debug + Send + Sync {
    /// Returns the kind of link, which the greeting names.
    fn kind(&self) -> LinkKind;

    /// Returns the folder that the worker with this process id creates for its server.
    ///
    /// # Errors
    /// If no path would do; the text says what to change.
    fn folder(&self, pid: u32) -> Result<PathBuf, String>;

    /// Connects to a worker's server and hands over the worker's ends of a link for messages of at
    /// most `limit` bytes.
    ///
    /// # Errors
    /// If the server is gone, descriptors run out, or `server` is not the name of a server in the
    /// folder of this worker.
    fn connect(
        &self,
        folder: &Path,
        server: &str,
        token: &Token,
        limit: usize,
    ) -> io::Result<HostEnd>;
}

/// The host's end of a link that was opened in the handshake.
pub struct HostEnd {
    /// Sends tasks.
    pub sender: Box<dyn LinkSender>,
    /// Receives outcomes.
    pub receiver: Box<dyn LinkReceiver>,
    /// Ends the link after the worker's death.
    pub end_mark: Box<dyn EndMark>,
}

/// Ends the direction to the host; for the thread that notices the worker's death.
pub trait EndMark: Send + Sync {
    /// Makes the host's receiver return [`LinkError::Closed`](super::LinkError::Closed) after it
    /// has received everything that was sent before, no matter who still holds the worker's end.
    fn send(&self);
}

/// Opens the worker's end of one kind of link.
pub trait WorkerConnector: fmt::Debug + Send + Sync {
    /// Returns the kind of link, which the greeting names.
    fn kind(&self) -> LinkKind;

    /// Creates `folder`, and a server in it. Called before this process has a second thread.
    ///
    /// # Errors
    /// See [`ListenError`]; nothing is left behind.
    fn listen(&self, folder: &Path) -> Result<Box<dyn LinkServer>, ListenError>;
}

/// A worker's server, which accepts one link. Its folder is removed by `accept` and on drop.
pub trait LinkServer {
    /// Returns the name by which the host connects.
    fn name(&self) -> &str;

    /// Takes the ends that the host has handed over. Call it only after the host has connected:
    /// otherwise it blocks without a limit. Programs that a task starts do not inherit the link.
    ///
    /// # Errors
    /// If the host handed over something else, or does not have the token.
    fn accept(self: Box<Self>, token: &Token, limit: usize) -> Result<WorkerEnd, BoxedError>;
}

/// The worker's end of a link that was opened in the handshake.
pub struct WorkerEnd {
    /// Sends outcomes.
    pub sender: Box<dyn LinkSender>,
    /// Receives tasks.
    pub receiver: Box<dyn LinkReceiver>,
}

/// An error of a connector.
pub type BoxedError = Box<dyn Error + Send + Sync>;

/// The reason why a worker has no server.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Other threads of this process forbid it.
    #[error(transparent)]
    OtherThreads(BoxedError),
    /// Anything else.
    #[error(transparent)]
    Failed(BoxedError),
}

brigade_sys::debug_fields!(impl HostEnd {});

brigade_sys::debug_fields!(impl WorkerEnd {});

brigade_sys::debug_as_text!(ListenError);
