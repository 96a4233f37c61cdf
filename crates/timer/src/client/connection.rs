//! One process's connection to a server.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use brigade_sys::clock::now;
use brigade_sys::request_socket::{Address, Request as Packet, RequestSocket};
use brigade_sys::wait::wait_readable;
use brigade_wire::codec;

use crate::error::ClientError;
use crate::request::{Answer, PACKET_LIMIT, Request, VERSION, packet};

/// How long a server may take to read what was sent before it counts as stalled.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Connection {
    socket: RequestSocket,
    /// The process that has connected, whose timers these are.
    process: u32,
}

impl Connection {
    /// Connects, and waits until the server has said that it serves this process.
    pub(super) fn open(address: &Address) -> Result<Self, ClientError> {
        let socket = RequestSocket::connect(address)
            .map_err(|source| ClientError::Connect { address: address.to_string(), source })?;
        let connection = Self { socket, process: std::process::id() };
        connection.greet()?;
        Ok(connection)
    }

    /// Whether it is this process's, and not its parent's.
    pub(super) fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    fn greet(&self) -> Result<(), ClientError> {
        let deadline = now().saturating_add(PATIENCE);
        // A server that refuses us may have closed the connection already; its reason is there to be read.
        let _ = self.socket.send(&packet(&Request::Hello { version: VERSION }));
        let mut buffer = [0; PACKET_LIMIT];
        if !wait_readable(&[self.socket.as_fd()], Some(deadline)).map_err(ClientError::Gone)?[0] {
            return Err(ClientError::Stalled);
        }
        let packet = self.socket.receive(&mut buffer).map_err(ClientError::Gone)?;
        let Packet::Packet { length, .. } = packet else {
            return Err(ClientError::Refused("it closed the connection".into()));
        };
        match codec::decode(&buffer[..length]) {
            Ok(Answer::Welcome) => Ok(()),
            Ok(Answer::Refused { reason }) => Err(ClientError::Refused(reason)),
            Err(_) => Err(ClientError::Refused("it speaks another protocol".into())),
        }
    }

    pub(super) fn send(&self, packet: &[u8]) -> Result<(), ClientError> {
        let sent = match self.socket.send(packet) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.socket.send_by(packet, now().saturating_add(PATIENCE))
            }
            sent => sent,
        };
        sent.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => ClientError::Stalled,
            _ => ClientError::Gone(error),
        })
    }
}
