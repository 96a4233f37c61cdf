//! The link as pool and worker use it, which know it only by these traits.

use std::io;
use std::path::{Path, PathBuf};

use brigade_sys::descriptors;
use brigade_wire::handshake::{LinkKind, Token};
use brigade_wire::link::connect::{
    self, BoxedError, HostConnector, LinkServer, ListenError, WorkerConnector,
};

use crate::host::{self, EndMark};
use crate::server::{self, Server, ServerError};
use crate::worker::worker_end;

/// The connector of both ends of the ipc link.
#[derive(Debug, Clone, Copy)]
pub struct Ipc;

impl HostConnector for Ipc {
    fn kind(&self) -> LinkKind {
        LinkKind::Ipc
    }

    fn folder(&self, pid: u32) -> Result<PathBuf, String> {
        server::folder(pid)
    }

    fn connect(
        &self,
        folder: &Path,
        server: &str,
        token: &Token,
        limit: usize,
    ) -> io::Result<connect::HostEnd> {
        let host::HostEnd { sender, receiver, end_mark } =
            server::connect(folder, server, token, limit)?;
        Ok(connect::HostEnd {
            sender: Box::new(sender),
            receiver: Box::new(receiver),
            end_mark: Box::new(end_mark),
        })
    }
}

impl connect::EndMark for EndMark {
    fn send(&self) {
        Self::send(self);
    }
}

impl WorkerConnector for Ipc {
    fn kind(&self) -> LinkKind {
        LinkKind::Ipc
    }

    fn listen(&self, folder: &Path) -> Result<Box<dyn LinkServer>, ListenError> {
        match Server::create(folder) {
            Ok((server, name)) => Ok(Box::new(Listening { server, name })),
            Err(error @ ServerError::Environment(_)) => {
                Err(ListenError::OtherThreads(error.into()))
            }
            Err(error) => Err(ListenError::Failed(error.into())),
        }
    }
}

/// A server and the name by which the host connects to it.
struct Listening {
    server: Server,
    name: String,
}

impl LinkServer for Listening {
    fn name(&self) -> &str {
        &self.name
    }

    fn accept(
        self: Box<Self>,
        token: &Token,
        limit: usize,
    ) -> Result<connect::WorkerEnd, BoxedError> {
        let channels = self.server.accept()?;
        if channels.token != *token {
            return Err(ServerError::Token.into());
        }
        let end = worker_end(channels, limit);
        // ipc-channel lets programs that a task starts inherit some of its descriptors.
        descriptors::close_on_exec_from(3);
        Ok(end)
    }
}
