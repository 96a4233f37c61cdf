//! The descriptors of channels, which ipc-channel does not show: it sends them to a socket of ours.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use brigade_sys::clock::now;
use brigade_sys::control::{ControlSocket, Received};
use brigade_sys::handover::Handover;
use ipc_channel::ipc::{IpcBytesSender, IpcSender};

/// What was sent by this thread is there at once.
const SOON: Duration = Duration::from_secs(5);

/// Tells descriptors.
#[derive(Debug)]
pub(super) struct Descriptors {
    to: IpcSender<IpcBytesSender>,
    here: ControlSocket,
}

impl Descriptors {
    /// Uses a path in a private folder for a moment.
    pub(super) fn by_way_of(path: &Path) -> io::Result<Self> {
        let handover = Handover::at(path)?;
        let name = path.to_str().ok_or(io::ErrorKind::InvalidInput)?;
        let to = IpcSender::connect(name.to_owned())?;
        Ok(Self { to, here: handover.accept()? })
    }

    /// A duplicate of the descriptor: the open socket is the same.
    pub(super) fn of(&self, sender: &IpcBytesSender) -> io::Result<OwnedFd> {
        let sent = self.to.send(sender.clone());
        sent.map_err(|error| io::Error::other(error.to_string()))?;
        match self.here.receive(Some(now().saturating_add(SOON)), None)? {
            Received::Packet { mut descriptors, .. } => descriptors.pop(),
            _ => None,
        }
        .ok_or_else(|| io::Error::other("ipc-channel sent no descriptor"))
    }
}
