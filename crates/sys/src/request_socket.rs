//! Carries packets from processes that the kernel identifies, so that a server knows its clients.
//!
//! A packet arrives whole or not at all: a client that dies in the middle of a request has not sent
//! it. The server learns three things from the kernel that no client can forge: the pidfd of the
//! process that has connected, taken at that moment and so never another's; its user; and with each
//! packet the process that has sent it, which differs from the first if the socket was inherited.

mod credentials;
mod socket_file;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::{Errno, ioctl_fionbio, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_passcred, set_socket_timeout};
use rustix::net::{
    AddressFamily, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind,
    connect, listen, send, shutdown, socket_with, socketpair,
};

use crate::clock::{Monotonic, now};
use crate::fork::Origin;
use crate::process::ForeignProcess;
use crate::wait::wait_writable;
use socket_file::SocketFile;

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// A name without a file, which ends with its server. Written with an `@` in front.
    Abstract(String),
    /// A socket in the file system. Written as its absolute path.
    Path(PathBuf),
}

/// Maximum length of a name or path: the kernel's room for it, less one byte.
const MAX: usize = 107;

/// Maximum number of connections that wait to be accepted; the kernel's own limit is lower or the
/// same.
const BACKLOG: i32 = 4096;

impl Address {
    /// Parses an address.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput), with the problem.
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
            Self::Abstract(name) if name.is_empty() || name.len() > MAX => {
                Err(wrong("empty or too long name"))
            }
            Self::Abstract(name) => Ok(SocketAddrUnix::new_abstract_name(name.as_bytes())?),
            Self::Path(path) if !path.is_absolute() => Err(wrong("path is not absolute")),
            Self::Path(path) if path.as_os_str().len() > MAX => Err(wrong("path is too long")),
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

/// Checks that the kernel identifies processes that connect.
///
/// # Errors
/// [`Unsupported`](io::ErrorKind::Unsupported) before Linux 6.5; the system's error if descriptors
/// run out.
pub fn check_kernel() -> io::Result<()> {
    let (socket, _other) = pair()?;
    credentials::pidfd_of_peer(&socket).map(drop)
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// The server's socket, to which clients connect. A socket in the file system is removed on drop,
/// if it is still the same file.
#[derive(Debug)]
pub struct Listener {
    descriptor: OwnedFd,
    file: Option<SocketFile>,
    /// A fork of the process removes nothing.
    origin: Origin,
}

/// The process at the other end of a connection.
#[derive(Debug)]
pub struct Peer {
    /// The process that has connected, even if it has ended since.
    pub process: ForeignProcess,
    /// Its user at that time.
    pub user: u32,
}

impl Listener {
    /// Listens at the address. `accept` never blocks.
    ///
    /// # Errors
    /// [`AddrInUse`](io::ErrorKind::AddrInUse) if another server runs or starts there, or if a file
    /// there is not a socket. A socket that a server has left behind is replaced.
    pub fn bind(address: &Address) -> io::Result<Self> {
        let descriptor = unix_socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        let encoded = address.encode()?;
        let open = || -> io::Result<()> {
            bind(&descriptor, &encoded)?;
            // Before anybody can connect: accepted sockets inherit it.
            set_socket_passcred(&descriptor, true)?;
            Ok(listen(&descriptor, BACKLOG)?)
        };
        let file = match address {
            Address::Path(path) => Some(SocketFile::create(path, &encoded, open)?),
            Address::Abstract(_) => {
                open()?;
                None
            }
        };
        Ok(Self { descriptor, file, origin: Origin::here() })
    }

    /// Accepts the next connection, if one waits.
    ///
    /// # Errors
    /// If descriptors run out; for the peer, also if the kernel cannot do this, see
    /// [`check_kernel`].
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

crate::as_fd!(Listener, descriptor);

impl Drop for Listener {
    fn drop(&mut self) {
        if !self.origin.is_here() {
            return;
        }
        // A copy of the process may hold it open: new clients are refused, instead of waiting for
        // it.
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

/// One end of a connection. A drop ends it, even while copies of the process that `fork` has made
/// hold it open; in a copy it does not.
#[derive(Debug)]
pub struct RequestSocket {
    descriptor: OwnedFd,
    origin: Origin,
}

/// The result of [`RequestSocket::receive`].
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// A packet, which is now in the buffer.
    Packet {
        /// Number of bytes.
        length: usize,
        /// The sending process; 0 if the kernel did not report it, or the sender has no number in
        /// this pid namespace.
        sender: u32,
    },
    /// A packet that is larger than the buffer; it is lost.
    TooLarge,
    /// The other end is closed, and everything that it had sent was received.
    Closed,
    /// No packet has arrived.
    Nothing,
}

impl RequestSocket {
    fn new(descriptor: OwnedFd) -> Self {
        Self { descriptor, origin: Origin::here() }
    }

    /// Connects to a server. While thousands of others wait to be accepted it waits too, at most
    /// until the deadline.
    ///
    /// # Errors
    /// [`ConnectionRefused`](io::ErrorKind::ConnectionRefused) and
    /// [`NotFound`](io::ErrorKind::NotFound) if there is no server;
    /// [`TimedOut`](io::ErrorKind::TimedOut) if the server has accepted nobody until the deadline.
    pub fn connect(address: &Address, deadline: Monotonic) -> io::Result<Self> {
        let (socket, address) = (unix_socket(SocketFlags::CLOEXEC)?, address.encode()?);
        loop {
            let left = deadline.saturating_since(now());
            // Zero would mean forever.
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
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is no room;
    /// [`BrokenPipe`](io::ErrorKind::BrokenPipe) or
    /// [`ConnectionReset`](io::ErrorKind::ConnectionReset) if the other end is closed.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        retry_on_intr(|| send(&self.descriptor, bytes, SendFlags::NOSIGNAL))?;
        Ok(())
    }

    /// Sends one packet, and waits for room until the deadline.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) if there was no room; otherwise like
    /// [`send`](Self::send).
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
    /// The system's error; a reset connection counts as closed, after its packets.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Request> {
        loop {
            match credentials::receive(&self.descriptor, buffer) {
                Ok(request) => return Ok(request),
                // Reading the reset removes it: the packets sent before follow, then the end.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(Errno::AGAIN) => return Ok(Request::Nothing),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

crate::as_fd!(RequestSocket, descriptor);

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
