//! Packets from processes that the kernel names, so that a server knows whom it serves.
//!
//! A packet arrives whole or not at all: a client that dies in the middle of a request has not sent it. The server learns
//! three things from the kernel that no client can claim: the pidfd of the process that has connected, taken when it did
//! and so never another's; its user; and with each packet the process that has sent it, which is not the same when the
//! socket was inherited.

mod credentials;
mod place;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;
use rustix::io::ioctl_fionbio;
use rustix::net::sockopt::{Timeout, set_socket_passcred, set_socket_timeout};
use rustix::net::{
    AddressFamily, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind,
    connect, listen, send, shutdown, socket_with,
};

use crate::clock::{Monotonic, now};
use crate::fork::Origin;
use crate::process::ForeignProcess;
use crate::wait::wait_writable;
use place::Place;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// A name without a file, which ends with its server. Written with an `@` in front.
    Abstract(String),
    /// A socket in the file system. Written as its absolute path.
    Path(PathBuf),
}

/// So long may a name or a path be: what the kernel has room for, less a byte.
const LONGEST: usize = 107;

/// Connections that nobody has accepted yet; the kernel's own limit is lower or the same.
const BACKLOG: i32 = 4096;

impl Address {
    /// The address that is written like this.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput), with what is wrong.
    pub fn parse(text: &str) -> io::Result<Self> {
        let address = match text.strip_prefix('@') {
            Some(name) => Self::Abstract(name.to_owned()),
            None => Self::Path(text.into()),
        };
        address.encode()?;
        Ok(address)
    }

    fn encode(&self) -> io::Result<SocketAddrUnix> {
        let wrong = |what: &str| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{what} in the address {self}"))
        };
        match self {
            Self::Abstract(name) if name.is_empty() || name.len() > LONGEST => {
                Err(wrong("an empty or too long name"))
            }
            Self::Abstract(name) => Ok(SocketAddrUnix::new_abstract_name(name.as_bytes())?),
            Self::Path(path) if !path.is_absolute() => Err(wrong("a path that is not absolute")),
            Self::Path(path) if path.as_os_str().len() > LONGEST => Err(wrong("a too long path")),
            Self::Path(path) => Ok(SocketAddrUnix::new(path.as_path())?),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Abstract(name) => write!(out, "@{name}"),
            Self::Path(path) => path.display().fmt(out),
        }
    }
}

/// The user that this process acts as.
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Where clients connect. A socket in the file system is removed on drop, if it is still this one.
#[derive(Debug)]
pub struct Listener {
    descriptor: OwnedFd,
    file: Option<Place>,
    /// A fork of the process removes nothing.
    origin: Origin,
}

/// Who has connected.
#[derive(Debug)]
pub struct Peer {
    /// The process that did, even if it has ended since.
    pub process: ForeignProcess,
    /// Its user at that time.
    pub user: u32,
}

impl Listener {
    /// Listens at the address. `accept` never blocks.
    ///
    /// # Errors
    /// [`AddrInUse`](io::ErrorKind::AddrInUse) when another server is there, or is being started there, or there is
    /// something that is no socket. A socket that a server has left behind is replaced.
    pub fn bind(address: &Address) -> io::Result<Self> {
        let descriptor = unix_socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        let encoded = address.encode()?;
        let open = || -> io::Result<()> {
            bind(&descriptor, &encoded)?;
            // Before anybody can connect: what is accepted inherits it.
            set_socket_passcred(&descriptor, true)?;
            Ok(listen(&descriptor, BACKLOG)?)
        };
        let file = match address {
            Address::Path(path) => Some(Place::take(path, &encoded, open)?),
            Address::Abstract(_) => {
                open()?;
                None
            }
        };
        Ok(Self { descriptor, file, origin: Origin::here() })
    }

    /// The next connection, if one waits.
    ///
    /// # Errors
    /// When descriptors run out, or the kernel is older than 6.5 and has no pidfd of a peer.
    pub fn accept(&self) -> io::Result<Option<(RequestSocket, io::Result<Peer>)>> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = loop {
            match accept_with(&self.descriptor, flags) {
                Ok(socket) => break socket,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        };
        let peer = peer(&socket);
        Ok(Some((RequestSocket::new(socket), peer)))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if !self.origin.is_here() {
            return;
        }
        // A copy of the process may hold it open: whoever connects is refused, instead of waiting for it.
        let _ = shutdown(&self.descriptor, Shutdown::Both);
        if let Some(file) = &self.file {
            file.clear();
        }
    }
}

fn peer(socket: &OwnedFd) -> io::Result<Peer> {
    let (pid, user) = credentials::of_peer(socket)?;
    let process = ForeignProcess::from_pidfd(pid, credentials::pidfd_of_peer(socket)?);
    Ok(Peer { process, user })
}

/// One end of a connection. A drop ends it, also while copies of the process that `fork` has made hold it open; in a copy it
/// does not.
#[derive(Debug)]
pub struct RequestSocket {
    descriptor: OwnedFd,
    origin: Origin,
}

/// What [`RequestSocket::receive`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// So many bytes are in the buffer.
    Packet {
        /// How many.
        length: usize,
        /// Who has sent them; 0 if the kernel did not say, or the sender has no number here.
        sender: u32,
    },
    /// A packet that is larger than the buffer; it is lost.
    TooLarge,
    /// The other end is closed, and everything it had sent was received.
    Closed,
    /// Nothing is there.
    Nothing,
}

impl RequestSocket {
    fn new(descriptor: OwnedFd) -> Self {
        Self { descriptor, origin: Origin::here() }
    }

    /// Connects to a server. While thousands of others wait to be accepted it waits as well, at most until the deadline.
    ///
    /// # Errors
    /// [`ConnectionRefused`](io::ErrorKind::ConnectionRefused) and [`NotFound`](io::ErrorKind::NotFound) when there is
    /// no server; [`TimedOut`](io::ErrorKind::TimedOut) when it has accepted nobody for so long.
    pub fn connect(address: &Address, deadline: Monotonic) -> io::Result<Self> {
        let (socket, address) = (unix_socket(SocketFlags::CLOEXEC)?, address.encode()?);
        loop {
            let left = deadline.saturating_since(now());
            // None at all would mean for ever.
            let left = left.max(Duration::from_millis(1));
            set_socket_timeout(&socket, Timeout::Send, Some(left))?;
            match connect(&socket, &address) {
                Ok(()) => break,
                Err(Errno::INTR) if now() < deadline => {}
                Err(Errno::AGAIN | Errno::INTR) => return Err(io::ErrorKind::TimedOut.into()),
                Err(error) => return Err(error.into()),
            }
        }
        ioctl_fionbio(&socket, true)?;
        Ok(Self::new(socket))
    }

    /// Sends one packet, if there is room for it.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is none; [`BrokenPipe`](io::ErrorKind::BrokenPipe) or
    /// [`ConnectionReset`](io::ErrorKind::ConnectionReset) when the other end is closed.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        loop {
            match send(&self.descriptor, bytes, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends one packet, and waits for room until the deadline.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) when there was none; else as [`send`](Self::send).
    pub fn send_by(&self, bytes: &[u8], deadline: Monotonic) -> io::Result<()> {
        loop {
            match self.send(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return sent,
            }
            if !wait_writable(self.as_fd(), deadline)? {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// Takes the next packet, if there is one.
    ///
    /// # Errors
    /// What the system says; a connection that is reset counts as closed, after its packets.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Request> {
        loop {
            match credentials::receive(&self.descriptor, buffer) {
                Ok(request) => return Ok(request),
                // Reading the reset takes it away: what follows is what was sent before, then the end.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(Errno::AGAIN) => return Ok(Request::Nothing),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for RequestSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for RequestSocket {
    fn drop(&mut self) {
        if self.origin.is_here() {
            let _ = shutdown(&self.descriptor, Shutdown::Both);
        }
    }
}

fn unix_socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

#[cfg(test)]
mod tests;
