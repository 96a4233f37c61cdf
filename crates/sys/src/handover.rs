//! The descriptor of a socket that a library has made and does not show: the library sends it to a socket of ours.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::ioctl_fionbio;
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen,
    shutdown, socket_with,
};

use crate::control::ControlSocket;

/// A place to which the library connects; it is gone when this is dropped.
#[derive(Debug)]
pub struct Handover {
    listener: OwnedFd,
    path: PathBuf,
}

impl Handover {
    /// Makes the place, in a folder that is private.
    ///
    /// # Errors
    /// When the path is too long or in use, or descriptors run out.
    pub fn at(path: &Path) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&listener, &SocketAddrUnix::new(path)?)?;
        let this = Self { listener, path: path.to_owned() };
        listen(&this.listener, 1)?;
        Ok(this)
    }

    /// Takes the connection that was made.
    ///
    /// # Errors
    /// `WouldBlock` when there is none.
    pub fn accept(self) -> io::Result<ControlSocket> {
        Ok(ControlSocket::from_fd(accept_with(&self.listener, SocketFlags::CLOEXEC)?))
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        // Whoever removes the folder removes it as well.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// From now on sends and receives through any descriptor of this open socket fail instead of waiting.
///
/// # Errors
/// What the system says.
pub fn never_block(socket: impl AsFd) -> io::Result<()> {
    Ok(ioctl_fionbio(socket, true)?)
}

/// The other side finds the end of the connection behind what was sent, whoever has this socket open.
///
/// # Errors
/// What the system says; when the other side is closed as well.
pub fn end_sending(socket: impl AsFd) -> io::Result<()> {
    Ok(shutdown(socket, Shutdown::Write)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Received;

    #[test]
    fn the_end_of_sending_is_seen_behind_what_was_sent_although_the_socket_stays_open() {
        let (here, there) = ControlSocket::pair().unwrap();
        let there = ControlSocket::from_fd(there);
        there.send(b"last", &[]).unwrap();
        end_sending(&there).unwrap();
        assert!(
            matches!(here.receive(None, None).unwrap(), Received::Packet { bytes, .. } if bytes == b"last")
        );
        assert!(matches!(here.receive(None, None).unwrap(), Received::Closed));
    }

    #[test]
    fn a_place_without_a_visitor_is_an_error_and_leaves_nothing() {
        let path = std::env::temp_dir().join(format!("brigade-handover-{}", std::process::id()));
        let handover = Handover::at(&path).unwrap();
        assert!(path.exists());
        assert_eq!(handover.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(!path.exists());
    }
}
