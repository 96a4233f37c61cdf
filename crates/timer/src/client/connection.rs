//! A process's connection to a server.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use brigade_codec as codec;
use brigade_sys::clock::{Monotonic, now};
use brigade_sys::request_socket::{Address, Request as Packet, RequestSocket};
use brigade_sys::sync::Mutex;
use brigade_sys::wait::wait_readable;

use crate::error::ClientError;
use crate::machine::TIMERS_PER_PROCESS;
use crate::request::{Answer, PACKET_LIMIT, TimerRequest, VERSION, packet};

/// Time that the server has to read or reply before the client reports `Stalled`.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Number of timers that a new connection may arm before it asks the server for its count. With the
/// maximum number of connections per process, they add up to half of the limit.
const FIRST_TIMERS: i64 = 2_048;

#[derive(Debug)]
pub(super) struct Connection {
    socket: RequestSocket,
    /// Number of timers that may be armed before the server is asked for its count.
    left: AtomicI64,
    /// Held by the thread that asks for the count.
    counting: Mutex<()>,
}

impl Connection {
    /// Connects, and waits until the server has accepted this process.
    pub(super) fn open(address: &Address) -> Result<Self, ClientError> {
        let deadline = now().saturating_add(TIMEOUT);
        let socket = RequestSocket::connect(address, deadline)
            .map_err(|source| ClientError::Connect { address: address.to_string(), source })?;
        let connection =
            Self { socket, left: AtomicI64::new(FIRST_TIMERS), counting: Mutex::new(()) };
        connection.say_hello()?;
        Ok(connection)
    }

    fn say_hello(&self) -> Result<(), ClientError> {
        let deadline = now().saturating_add(TIMEOUT);
        // A server that refuses this process may already have closed the connection. Its reason can
        // still be read.
        let _ = self.socket.send(&packet(&TimerRequest::Hello { version: VERSION }));
        match self.answer(deadline) {
            Ok(Answer::Welcome) => Ok(()),
            Ok(_) => Err(ClientError::Refused("the server speaks another protocol".into())),
            Err(ClientError::Gone(_)) => {
                Err(ClientError::Refused("the server closed the connection".into()))
            }
            Err(error) => Err(error),
        }
    }

    /// Waits for a reply. A refusal is returned as an error.
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
            Err(_) => Err(ClientError::Refused("the server speaks another protocol".into())),
        }
    }

    /// Counts a timer that is about to be armed. The server knows how many are left; it is asked
    /// when half of the previous remainder may be used up, because this process may have other
    /// connections.
    pub(super) fn reserve(&self) -> Result<(), ClientError> {
        while self.left.fetch_sub(1, Ordering::Relaxed) <= 0 {
            let counting = self.counting.lock();
            if self.left.load(Ordering::Relaxed) > 0 {
                continue;
            }
            self.send(&packet(&TimerRequest::Count))?;
            let Answer::Count(count) = self.answer(now().saturating_add(TIMEOUT))? else {
                return Err(ClientError::Refused("the server speaks another protocol".into()));
            };
            let left =
                TIMERS_PER_PROCESS.saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
            if left == 0 {
                return Err(ClientError::TooManyTimers { limit: TIMERS_PER_PROCESS });
            }
            self.left.store(i64::try_from(left.div_ceil(2)).unwrap_or(0), Ordering::Relaxed);
            drop(counting);
        }
        Ok(())
    }

    /// Returns the reason for which the server closed the connection, if it sent one.
    pub(super) fn refusal(&self) -> Option<ClientError> {
        self.answer(now()).err().filter(|error| matches!(error, ClientError::Refused(_)))
    }

    pub(super) fn send(&self, packet: &[u8]) -> Result<(), ClientError> {
        let sent = match self.socket.send(packet) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.socket.send_by(packet, now().saturating_add(TIMEOUT))
            }
            sent => sent,
        };
        sent.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => ClientError::Stalled,
            _ => ClientError::Gone(error),
        })
    }
}
