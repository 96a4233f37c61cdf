//! Obtains the descriptor of a socket that a library has created and does not expose: the library
//! sends it to a socket of ours.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::ioctl_fionbio;
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen,
    shutdown, socket_with,
};

use crate::control::ControlSocket;

/// A socket to which the library connects; it is removed on drop.
#[derive(Debug)]
pub struct Handover {
    listener: OwnedFd,
    path: PathBuf,
}

impl Handover {
    /// Creates the socket in a private folder.
    ///
    /// # Errors
    /// If the path is too long or in use, or descriptors run out.
    pub fn at(path: &Path) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&listener, &SocketAddrUnix::new(path)?)?;
        let this = Self { listener, path: path.to_owned() };
        listen(&this.listener, 1)?;
        Ok(this)
    }

    /// Takes the library's connection.
    ///
    /// # Errors
    /// `WouldBlock` if nobody has connected.
    pub fn accept(self) -> io::Result<ControlSocket> {
        Ok(ControlSocket::from_fd(accept_with(&self.listener, SocketFlags::CLOEXEC)?))
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        // Removing the folder removes it as well.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Makes sends and receives through any descriptor of this open socket fail instead of waiting.
///
/// # Errors
/// The system's error.
pub fn never_block(socket: impl AsFd) -> io::Result<()> {
    Ok(ioctl_fionbio(socket, true)?)
}

/// Ends the sending side: the other side finds the end of the connection after the sent data, no
/// matter who else has this socket open.
///
/// # Errors
/// The system's error, for example if the other side is closed as well.
pub fn end_sending(socket: impl AsFd) -> io::Result<()> {
    Ok(shutdown(socket, Shutdown::Write)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Received;

    #[test]
    fn the_end_of_sending_follows_the_data_on_an_open_socket() {
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
    fn a_handover_without_a_connection_leaves_nothing() {
        let path = std::env::temp_dir().join(format!("brigade-handover-{}", std::process::id()));
        let handover = Handover::at(&path).unwrap();
        assert!(path.exists());
        assert_eq!(handover.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(!path.exists());
    }
}
