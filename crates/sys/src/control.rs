//! Carries packets and descriptors between a host and one worker; its closing shows each that the
//! other is gone.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::fstat;
use rustix::io::retry_on_intr;
use rustix::net::sockopt::{socket_domain, socket_type};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};

use crate::clock::Monotonic;
use crate::wait::wait_readable;

/// Maximum size of a packet in bytes.
pub const PACKET_LIMIT: usize = 64 * 1024;

/// Reads the size of the next packet, and leaves it where it is.
const PEEK: RecvFlags = RecvFlags::PEEK.union(RecvFlags::TRUNC).union(RecvFlags::DONTWAIT);

/// Maximum number of descriptors that travel with one packet.
const DESCRIPTORS: usize = 20;

/// One end of a control socket.
///
/// A task may close all descriptors of its worker and open its own with the same numbers. Nothing
/// is sent through those: the socket's identity is checked before each send.
#[derive(Debug)]
pub struct ControlSocket {
    descriptor: OwnedFd,
    /// Identity of the socket at the beginning, if the system reported it.
    identity: Option<Identity>,
}

/// Device and inode.
type Identity = (u64, u64);

fn identity(descriptor: impl AsFd) -> Option<Identity> {
    let status = fstat(descriptor).ok()?;
    Some((status.st_dev, status.st_ino))
}

/// The result of [`ControlSocket::receive`].
#[derive(Debug)]
pub enum Received {
    /// A packet, with the descriptors that came along.
    Packet {
        /// The packet.
        bytes: Vec<u8>,
        /// The descriptors, which are close-on-exec.
        descriptors: Vec<OwnedFd>,
    },
    /// The other end is closed, and everything that it had sent was received.
    Closed,
    /// The deadline has passed.
    TimedOut,
    /// The process whose pidfd was given is dead, and everything that it had sent was received.
    PeerDied,
}

impl ControlSocket {
    /// Creates a pair of connected ends: one to use here, one to give away.
    ///
    /// # Errors
    /// If descriptors run out.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (here, there) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self::from_fd(here), there))
    }

    /// Returns `true` if a descriptor is, by its kind, an end of some control socket.
    pub fn is_end(descriptor: impl AsFd) -> bool {
        let kind = (socket_domain(&descriptor), socket_type(&descriptor));
        kind == (Ok(AddressFamily::UNIX), Ok(SocketType::SEQPACKET))
    }

    /// Wraps an end that this process was given.
    pub fn from_fd(descriptor: OwnedFd) -> Self {
        Self { identity: identity(&descriptor), descriptor }
    }

    /// Sends one packet, with descriptors.
    ///
    /// # Errors
    /// `InvalidInput` for a packet that is empty or too large; `BrokenPipe` if the other end is
    /// closed; `EBADF` if other code has closed this end, even if another file now has its number.
    pub fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.send_with(bytes, descriptors, SendFlags::NOSIGNAL)
    }

    /// Sends one packet, with descriptors, unless that would block.
    ///
    /// # Errors
    /// As [`send`](Self::send); `WouldBlock` if the other end has not received enough of the
    /// earlier packets.
    pub fn try_send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.send_with(bytes, descriptors, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
    }

    fn send_with(
        &self,
        bytes: &[u8],
        descriptors: &[BorrowedFd<'_>],
        flags: SendFlags,
    ) -> io::Result<()> {
        if bytes.is_empty() || bytes.len() > PACKET_LIMIT || descriptors.len() > DESCRIPTORS {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "control packet size out of range",
            ));
        }
        if identity(&self.descriptor) != self.identity {
            return Err(rustix::io::Errno::BADF.into());
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        retry_on_intr(|| {
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            if !descriptors.is_empty() {
                ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
            }
            sendmsg(&self.descriptor, &[IoSlice::new(bytes)], &mut ancillary, flags)
        })?;
        Ok(())
    }

    /// Waits for a packet until the deadline, or until the process behind the pidfd `death` is
    /// dead.
    ///
    /// A packet that has arrived takes precedence over everything else.
    ///
    /// # Errors
    /// The system's error; a reset connection counts as closed, after its packets.
    pub fn receive(
        &self,
        deadline: Option<Monotonic>,
        death: Option<BorrowedFd<'_>>,
    ) -> io::Result<Received> {
        let mut waited_for = vec![self.descriptor.as_fd()];
        waited_for.extend(death);
        loop {
            if let Some(received) = self.try_receive()? {
                return Ok(received);
            }
            let ready = wait_readable(&waited_for, deadline)?;
            if ready[0] {
                continue;
            }
            return Ok(match ready.get(1) {
                // Everything that it sent before its death has arrived by now.
                Some(true) => self.try_receive()?.unwrap_or(Received::PeerDied),
                _ => Received::TimedOut,
            });
        }
    }

    /// Returns `true` if this process may have one more descriptor, which a packet could bring.
    pub fn takes_descriptors(&self) -> bool {
        self.descriptor.try_clone().is_ok()
    }

    /// Returns the next packet, or `None` if none has arrived.
    ///
    /// # Errors
    /// See [`receive`](Self::receive); `InvalidData` if this process could not take a descriptor of
    /// the packet, which is lost then.
    pub fn try_receive(&self) -> io::Result<Option<Received>> {
        // The size first: most packets are small, and clearing room for the largest one takes
        // longer than a system call, in a new process much longer. A sandbox of the user's own
        // knows no other call than the one below.
        let size = loop {
            let mut nothing = RecvAncillaryBuffer::default();
            match recvmsg(&self.descriptor, &mut [], &mut nothing, PEEK) {
                Ok(message) => break message.bytes.min(PACKET_LIMIT),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                // The message that follows is received below.
                Err(_) => break PACKET_LIMIT,
            }
        };
        let mut bytes = vec![0; size.max(1)];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let message = loop {
            match recvmsg(
                &self.descriptor,
                &mut [IoSliceMut::new(&mut bytes)],
                &mut ancillary,
                flags,
            ) {
                Ok(message) => break message,
                // A peer that closes with unread data leaves a reset in front of the packets that
                // it had sent. Reading the reset removes it; those packets follow, then the end.
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNRESET) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        };
        let descriptors = ancillary
            .drain()
            .flat_map(|message| match message {
                RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect::<Vec<_>>(),
                _ => Vec::new(),
            })
            .collect();
        if message.bytes == 0 {
            return Ok(Some(Received::Closed));
        }
        if message.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "truncated control packet"));
        }
        bytes.truncate(message.bytes);
        Ok(Some(Received::Packet { bytes, descriptors }))
    }
}

crate::as_fd!(ControlSocket, descriptor);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::now;

    #[test]
    fn packets_come_with_their_descriptors_before_the_end() -> io::Result<()> {
        let (here, there) = ControlSocket::pair()?;
        let there = ControlSocket::from_fd(there);
        there.send(b"one", &[there.as_fd()])?;
        there.send(b"two", &[])?;
        drop(there);
        let Received::Packet { bytes, descriptors } = here.receive(None, None)? else {
            panic!("no packet")
        };
        assert_eq!((bytes.as_slice(), descriptors.len()), (b"one".as_slice(), 1));
        drop(descriptors);
        let Received::Packet { bytes, .. } = here.receive(None, None)? else { panic!("no packet") };
        assert_eq!(bytes, b"two");
        assert!(matches!(here.receive(None, None)?, Received::Closed));
        let error = here.send(b"three", &[]).expect_err("the other end is closed");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        Ok(())
    }

    #[test]
    fn nothing_is_sent_through_a_socket_that_took_the_number() -> io::Result<()> {
        let (mut here, _there) = ControlSocket::pair()?;
        let (foreign, foreign_end) = ControlSocket::pair()?;
        // Like a task that closes all descriptors and then opens its own.
        rustix::io::dup2(foreign_end, &mut here.descriptor)?;
        assert!(here.send(b"for the host", &[]).is_err());
        assert!(matches!(foreign.receive(Some(now()), None)?, Received::TimedOut));
        Ok(())
    }

    #[test]
    fn a_silent_peer_is_waited_for_until_the_deadline() -> io::Result<()> {
        let (here, _there) = ControlSocket::pair()?;
        let deadline = now().saturating_add(Duration::from_millis(2));
        assert!(matches!(here.receive(Some(deadline), None)?, Received::TimedOut));
        Ok(())
    }

    #[test]
    fn empty_and_oversized_packets_are_refused() -> io::Result<()> {
        let (here, _there) = ControlSocket::pair()?;
        assert!(here.send(&[], &[]).is_err());
        assert!(here.send(&vec![0; PACKET_LIMIT + 1], &[]).is_err());
        here.send(&vec![0; PACKET_LIMIT], &[])
    }
}
