//! One client: reads its request and writes the answer, without ever blocking.
//!
//! ```text
//! Head ──> Response ──> Closing      every state has a deadline, but for a client of the events
//!   └────> Events                    that takes what it is sent
//! ```

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use brigade_sys::clock::Monotonic;
use brigade_sys::poller::Interest;

use crate::request::{HEAD_LIMIT, parse};
use crate::site::{Answer, Site};

/// The time for the head of a request. Slower clients are dropped.
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(5);
/// The time for taking a response, or an event.
pub(crate) const WRITE_TIME: Duration = Duration::from_secs(10);
/// The time for closing a connection whose response was sent.
const CLOSE_TIME: Duration = Duration::from_secs(1);
/// The number of bytes that a client may send after its request. They are read, because the kernel
/// would withdraw the response from a client whose bytes nobody has read.
const CLOSE_LIMIT: usize = 64 * 1024;

/// A client.
pub(crate) struct Connection {
    socket: TcpStream,
    local: IpAddr,
    phase: Phase,
    deadline: Option<Monotonic>,
}

enum Phase {
    /// Reads the head of the request.
    Head(Vec<u8>),
    /// Writes the response.
    Response(ResponseBytes),
    /// Writes events, and has taken the previous ones if there is no output.
    Events(Option<ResponseBytes>),
    /// Waits until the client closes, and ignores this number of bytes.
    Closing(usize),
}

/// Bytes to write.
struct ResponseBytes {
    bytes: Arc<[u8]>,
    sent: usize,
}

/// The fate of a connection after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Open,
    Close,
}

impl Connection {
    pub(crate) fn new(socket: TcpStream, now: Monotonic) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        // Events are whole when they are written; there is nothing to wait for.
        socket.set_nodelay(true)?;
        let local = socket.local_addr()?.ip();
        let deadline = Some(now.saturating_add(HEAD_TIME));
        Ok(Self { socket, local, phase: Phase::Head(Vec::new()), deadline })
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Returns the time at which the client is dropped.
    pub(crate) fn deadline(&self) -> Option<Monotonic> {
        self.deadline
    }

    pub(crate) fn interest(&self) -> Interest {
        match &self.phase {
            Phase::Head(_) | Phase::Closing(_) | Phase::Events(None) => Interest::Readable,
            Phase::Response(_) => Interest::Writable,
            Phase::Events(Some(_)) => Interest::Both,
        }
    }

    /// Returns `true` if the client follows the events.
    pub(crate) fn follows_events(&self) -> bool {
        matches!(self.phase, Phase::Events(_))
    }

    /// Returns `true` if nothing is lost to an honest client when the connection is closed.
    pub(crate) fn is_expendable(&self) -> bool {
        matches!(self.phase, Phase::Head(_) | Phase::Closing(_))
    }

    /// Continues when the socket is ready. `accepts_followers` is `false` if too many clients
    /// follow the events already.
    pub(crate) fn ready(&mut self, site: &Site, accepts_followers: bool, now: Monotonic) -> Fate {
        let result = match &mut self.phase {
            Phase::Head(_) => self.read_head(site, accepts_followers, now),
            Phase::Response(_) => self.write(now),
            Phase::Events(_) => match self.discard() {
                Ok(0) => Ok(Fate::Close),
                Err(error) if !is_transient(&error) => Err(error),
                _ => self.write(now),
            },
            Phase::Closing(limit) => {
                let limit = *limit;
                self.discard().map(|count| match limit.checked_sub(count) {
                    Some(left) if count > 0 => {
                        self.phase = Phase::Closing(left);
                        Fate::Open
                    }
                    _ => Fate::Close,
                })
            }
        };
        match result {
            Ok(fate) => fate,
            Err(error) if is_transient(&error) => Fate::Open,
            // The client is gone.
            Err(_) => Fate::Close,
        }
    }

    /// Sends an event, unless the client has not taken the previous one yet.
    pub(crate) fn send_event(&mut self, event: &Arc<[u8]>, now: Monotonic) -> Fate {
        if !matches!(self.phase, Phase::Events(None)) {
            return Fate::Open;
        }
        self.phase = Phase::Events(Some(ResponseBytes::new(Arc::clone(event))));
        self.deadline = Some(now.saturating_add(WRITE_TIME));
        self.write(now).unwrap_or(Fate::Close)
    }

    fn read_head(
        &mut self,
        site: &Site,
        accepts_followers: bool,
        now: Monotonic,
    ) -> io::Result<Fate> {
        let Phase::Head(head) = &mut self.phase else { return Ok(Fate::Open) };
        let mut bytes = [0; HEAD_LIMIT];
        let count = self.socket.read(&mut bytes)?;
        if count == 0 {
            return Ok(Fate::Close);
        }
        head.extend(&bytes[..count]);
        let Some(request) = parse(head).transpose() else { return Ok(Fate::Open) };
        self.phase = match site.answer(request, self.local, accepts_followers) {
            Answer::Response(bytes) => Phase::Response(ResponseBytes::new(bytes)),
            Answer::Events(bytes) => Phase::Events(Some(ResponseBytes::new(bytes))),
        };
        self.deadline = Some(now.saturating_add(WRITE_TIME));
        self.write(now)
    }

    fn write(&mut self, now: Monotonic) -> io::Result<Fate> {
        let (Phase::Response(output) | Phase::Events(Some(output))) = &mut self.phase else {
            return Ok(Fate::Open);
        };
        while output.sent < output.bytes.len() {
            match self.socket.write(&output.bytes[output.sent..]) {
                Ok(0) => return Ok(Fate::Close),
                Ok(count) => output.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Fate::Open),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.follows_events() {
            (self.phase, self.deadline) = (Phase::Events(None), None);
        } else {
            self.socket.shutdown(Shutdown::Write)?;
            self.phase = Phase::Closing(CLOSE_LIMIT);
            self.deadline = Some(now.saturating_add(CLOSE_TIME));
        }
        Ok(Fate::Open)
    }

    /// Reads and forgets. Returns the number of bytes; 0 at the end.
    fn discard(&mut self) -> io::Result<usize> {
        self.socket.read(&mut [0; 4096])
    }
}

impl ResponseBytes {
    fn new(bytes: Arc<[u8]>) -> Self {
        Self { bytes, sent: 0 }
    }
}

/// Returns `true` if the socket will be ready again.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
