//! The portable link, over ipc-channel.
//!
//! Internal to Brigade: any release may change its interface. Programs use the facade `brigade`.
//!
//! ```
//! use brigade_link_ipc::{host_end, worker_end};
//! use brigade_wire::handshake::Token;
//! use brigade_wire::link::{LinkReceiver, LinkSender};
//!
//! let socket = std::env::temp_dir().join(format!("link-{}", Token::random().short()));
//! let (mut host, channels) = host_end(Token::random(), 1 << 20, &socket)?;
//! let mut worker = worker_end(channels, 1 << 20);
//! host.sender.send(b"head, ", b"payload")?;
//! assert_eq!(worker.receiver.receive()?, b"head, payload");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

//! Properties of ipc-channel on Linux, and their consequences here:
//! - `send` blocks if the peer does not read. So the host counts the bytes in flight (`window`) and
//!   sends only what surely fits; the rest waits in the host's memory until the worker reports that
//!   it has consumed some. Because a worker may lie, the socket does not block (`descriptor` gets
//!   at it), and a send that would block is a breach of the protocol.
//! - Messages above the socket's buffer are sent in fragments over a second socket, which a stopped
//!   or dead peer blocks or breaks. So packets stay far below that size, and longer messages are
//!   split here (`packet`).
//! - A receiver reports "closed" only if nobody holds the sending end, and a worker's children may
//!   hold it. So the host keeps a duplicate of the worker's sending end and shuts the socket down
//!   itself ([`EndMark`]).
//! - Interrupted calls are not repeated, and a dead peer is an `EPIPE` or `ECONNRESET`: see
//!   `failure`.

#![forbid(unsafe_code)]

#[cfg(windows)]
extern crate brigade_windows as std;

mod connector;
mod descriptor;
mod host;
mod packet;
mod server;
mod window;
mod worker;

use std::io;

use brigade_sys::catch_panic::catch_panic;
use brigade_wire::handshake::Token;
use brigade_wire::link::LinkError;
use ipc_channel::IpcError;
use ipc_channel::ipc::{IpcBytesReceiver, IpcBytesSender};
use serde::{Deserialize, Serialize};

pub use connector::Ipc;
pub use host::{EndMark, HostEnd, HostReceiver, HostSender, host_end};
pub use server::{Server, ServerError, connect};
pub use worker::worker_end;

/// The worker's ends of two channels, which the host sends through the server.
#[derive(Debug, Serialize, Deserialize)]
pub struct Channels {
    /// Proves that the sender is the host.
    pub token: Token,
    /// The channel of tasks.
    pub receiver: IpcBytesReceiver,
    /// The channel of outcomes.
    pub sender: IpcBytesSender,
}

/// Sends one packet; repeats interrupted calls.
fn send_packet(sender: &IpcBytesSender, packet: &[u8]) -> Result<(), LinkError> {
    loop {
        match sender.send(packet) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failure(error)),
        }
    }
}

/// Receives one packet; repeats interrupted calls.
fn receive_packet(receiver: &IpcBytesReceiver) -> Result<Vec<u8>, LinkError> {
    loop {
        // ipc-channel believes the lengths that a peer writes and panics on impossible ones.
        let result = catch_panic(|| receiver.recv());
        match result {
            Ok(Ok(packet)) => return Ok(packet),
            Ok(Err(IpcError::Disconnected)) => return Err(LinkError::Closed),
            Ok(Err(IpcError::Io(error))) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(Err(IpcError::Io(error))) => return Err(failure(error)),
            Ok(Err(_)) | Err(_) => {
                return Err(LinkError::Protocol("packet that ipc-channel cannot decode"));
            }
        }
    }
}

/// Converts system errors to link errors; nothing else does.
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
