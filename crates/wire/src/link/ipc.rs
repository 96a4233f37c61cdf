//! The portable link, over ipc-channel.
//!
//! What ipc-channel does on Linux, and what follows from it here:
//! - `send` blocks when the peer does not read. So the host counts the bytes under way (`window`) and sends only what is
//!   sure to fit; the rest waits in the host's memory and goes out when the worker says that it has consumed some. For a worker
//!   that lies the socket does not block (`descriptor` gets at it), and a send that would is a breach.
//! - Messages above the socket's buffer are sent in fragments over a second socket, which a stopped or dead peer blocks or
//!   breaks. So packets stay far below that size, and longer messages are cut here (`packet`).
//! - A receiver tells "closed" only when nobody holds the sending end, and a worker's children may. So the host keeps a
//!   duplicate of the worker's sending end and shuts the socket down itself ([`Poison`]).
//! - Interrupted calls are not made again, and a dead peer is an `EPIPE` or `ECONNRESET`: see `failure`.

mod descriptor;
mod host;
mod packet;
mod server;
mod window;
mod worker;

use std::io;

use ipc_channel::IpcError;
use ipc_channel::ipc::{IpcBytesReceiver, IpcBytesSender};
use serde::{Deserialize, Serialize};

use super::LinkError;
use crate::handshake::Token;
pub use host::{HostEnd, HostReceiver, HostSender, Poison, host_end};
pub use server::{Server, ServerError, connect, fits};
pub use worker::{WorkerEnd, WorkerReceiver, WorkerSender, worker_end};

/// What the host sends through the server: the worker's ends of two channels.
#[derive(Debug, Serialize, Deserialize)]
pub struct Channels {
    /// Proves that it is the host.
    pub token: Token,
    /// Where tasks come from.
    pub receiver: IpcBytesReceiver,
    /// Where answers go.
    pub sender: IpcBytesSender,
}

/// Sends one packet, again when interrupted.
fn send_packet(sender: &IpcBytesSender, packet: &[u8]) -> Result<(), LinkError> {
    loop {
        match sender.send(packet) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failure(error)),
        }
    }
}

/// Receives one packet, again when interrupted.
fn receive_packet(receiver: &IpcBytesReceiver) -> Result<Vec<u8>, LinkError> {
    loop {
        // ipc-channel believes the lengths that a peer writes and panics on impossible ones.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| receiver.recv()));
        match result {
            Ok(Ok(packet)) => return Ok(packet),
            Ok(Err(IpcError::Disconnected)) => return Err(LinkError::Closed),
            Ok(Err(IpcError::Io(error))) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(Err(IpcError::Io(error))) => return Err(failure(error)),
            Ok(Err(_)) | Err(_) => {
                return Err(LinkError::Protocol("a packet that ipc-channel cannot read"));
            }
        }
    }
}

/// The one place where the system's errors become the link's.
fn failure(error: io::Error) -> LinkError {
    match error.kind() {
        io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::NotConnected => LinkError::Closed,
        _ => LinkError::Io(error),
    }
}

#[cfg(test)]
mod tests;
