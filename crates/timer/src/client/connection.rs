//! One process's connection to a server.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use brigade_sys::clock::{Monotonic, now};
use brigade_sys::request_socket::{Address, Request as Packet, RequestSocket};
use brigade_sys::wait::wait_readable;
use brigade_wire::codec;

use crate::error::ClientError;
use crate::machine::TIMERS_PER_WORKER;
use crate::request::{Answer, PACKET_LIMIT, Request, VERSION, packet};

/// How long a server may take to read what was sent before it counts as stalled.
const PATIENCE: Duration = Duration::from_secs(5);

/// So many timers a new connection may have armed without a question: with as many connections as a process may have, it is
/// half of its limit.
const FIRST_TIMERS: i64 = 2_048;

#[derive(Debug)]
pub(super) struct Connection {
    socket: RequestSocket,
    /// So many timers may be armed before the server is asked how many there are.
    left: AtomicI64,
    /// Held by the thread that asks.
    counting: Mutex<()>,
}

impl Connection {
    /// Connects, and waits until the server has said that it serves this process.
    pub(super) fn open(address: &Address) -> Result<Self, ClientError> {
        let deadline = now().saturating_add(PATIENCE);
        let socket = RequestSocket::connect(address, deadline)
            .map_err(|source| ClientError::Connect { address: address.to_string(), source })?;
        let connection =
            Self { socket, left: AtomicI64::new(FIRST_TIMERS), counting: Mutex::new(()) };
        connection.greet()?;
        Ok(connection)
    }

    fn greet(&self) -> Result<(), ClientError> {
        let deadline = now().saturating_add(PATIENCE);
        // A server that refuses us may have closed the connection already; its reason is there to be read.
        let _ = self.socket.send(&packet(&Request::Hello { version: VERSION }));
        match self.answer(deadline) {
            Ok(Answer::Welcome) => Ok(()),
            Ok(_) => Err(ClientError::Refused("it speaks another protocol".into())),
            Err(ClientError::Gone(_)) => {
                Err(ClientError::Refused("it closed the connection".into()))
            }
            Err(error) => Err(error),
        }
    }

    /// Waits for an answer; a refusal is an error.
    fn answer(&self, deadline: Monotonic) -> Result<Answer, ClientError> {
        if !wait_readable(&[self.socket.as_fd()], Some(deadline)).map_err(ClientError::Gone)?[0] {
            return Err(ClientError::Stalled);
        }
        let mut buffer = [0; PACKET_LIMIT];
        let packet = self.socket.receive(&mut buffer).map_err(ClientError::Gone)?;
        let Packet::Packet { length, .. } = packet else {
            return Err(ClientError::Gone(io::ErrorKind::UnexpectedEof.into()));
        };
        match codec::decode(&buffer[..length]) {
            Ok(Answer::Refused { reason }) => Err(ClientError::Refused(reason)),
            Ok(answer) => Ok(answer),
            Err(_) => Err(ClientError::Refused("it speaks another protocol".into())),
        }
    }

    /// Counts a timer that is about to be armed. Whether there is room says the server; it is asked when half of what was
    /// left the last time may be used up, as this process may have other connections.
    pub(super) fn reserve(&self) -> Result<(), ClientError> {
        while self.left.fetch_sub(1, Ordering::Relaxed) <= 0 {
            let counting = self.counting.lock().unwrap_or_else(PoisonError::into_inner);
            if self.left.load(Ordering::Relaxed) > 0 {
                continue;
            }
            self.send(&packet(&Request::Count))?;
            let Answer::Count(count) = self.answer(now().saturating_add(PATIENCE))? else {
                return Err(ClientError::Refused("it speaks another protocol".into()));
            };
            let left =
                TIMERS_PER_WORKER.saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
            if left == 0 {
                return Err(ClientError::TooManyTimers { limit: TIMERS_PER_WORKER });
            }
            self.left.store(i64::try_from(left.div_ceil(2)).unwrap_or(0), Ordering::Relaxed);
            drop(counting);
        }
        Ok(())
    }

    /// Why the server has closed the connection, if it has said so.
    pub(super) fn farewell(&self) -> Option<ClientError> {
        let mut buffer = [0; PACKET_LIMIT];
        let Ok(Packet::Packet { length, .. }) = self.socket.receive(&mut buffer) else {
            return None;
        };
        match codec::decode(&buffer[..length]) {
            Ok(Answer::Refused { reason }) => Some(ClientError::Refused(reason)),
            _ => None,
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
