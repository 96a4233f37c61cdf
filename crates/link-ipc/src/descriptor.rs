//! Obtains the descriptors of channels. ipc-channel does not expose them, so it sends them to a
//! socket of this module.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use brigade_sys::clock::now;
use brigade_sys::control::{ControlSocket, Received};
use brigade_sys::handover::Handover;
use ipc_channel::ipc::{IpcBytesSender, IpcSender};

/// Timeout for a message that this thread has already sent, which arrives at once.
const SOON: Duration = Duration::from_secs(5);

/// Finds the descriptors of channels.
#[derive(Debug)]
pub(crate) struct Descriptors {
    to: IpcSender<IpcBytesSender>,
    here: ControlSocket,
}

impl Descriptors {
    /// Briefly uses a path in a private folder.
    pub(crate) fn by_way_of(path: &Path) -> io::Result<Self> {
        let handover = Handover::at(path)?;
        let name = path.to_str().ok_or(io::ErrorKind::InvalidInput)?;
        let to = IpcSender::connect(name.to_owned())?;
        Ok(Self { to, here: handover.accept()? })
    }

    /// Returns a duplicate of the channel's descriptor; both refer to the same open socket.
    pub(crate) fn of(&self, sender: &IpcBytesSender) -> io::Result<OwnedFd> {
        let sent = self.to.send(sender.clone());
        sent.map_err(|error| io::Error::other(error.to_string()))?;
        match self.here.receive(Some(now().saturating_add(SOON)), None)? {
            Received::Packet { mut descriptors, .. } => descriptors.pop(),
            _ => None,
        }
        .ok_or_else(|| io::Error::other("ipc-channel sent no descriptor"))
    }
}
