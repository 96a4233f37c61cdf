//! Where the two ends meet: a one-shot server that the worker makes and the host connects to.

use std::fmt;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use brigade_sys::control::ControlSocket;
use brigade_sys::environment::{self, EnvironmentError};
use ipc_channel::ipc::{IpcOneShotServer, IpcSender};

use super::Channels;
use super::host::{HostEnd, host_end};
use crate::handshake::Token;

/// A socket's path has room for 107 bytes; ipc-channel cuts longer ones off without a word.
const LONGEST_PATH: usize = 100;

/// What ipc-channel puts behind the folder: `/.tmpXXXXXX/socket`.
const SUFFIX: usize = 18;

/// Whether a server in this folder has a path that is short enough.
pub fn fits(folder: &Path) -> bool {
    folder.as_os_str().len() + SUFFIX <= LONGEST_PATH
}

/// Why a worker's server could not be made or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The folder's path is too long.
    #[error("the path {} is too long for a socket; set TMPDIR to a shorter one", .0.display())]
    PathTooLong(PathBuf),
    /// The folder could not be made.
    #[error("failed to make the folder {} for a socket", .0.display())]
    Folder(PathBuf, #[source] io::Error),
    /// The variable that tells ipc-channel where to put its socket could not be set.
    #[error("failed to direct the socket to its folder; Link::Ring needs none")]
    Environment(#[source] EnvironmentError),
    /// The socket could not be made.
    #[error("failed to make a socket")]
    Socket(#[source] io::Error),
    /// The host did not come, or sent something else.
    #[error("failed to receive the link: {0}")]
    Accept(String),
}

/// What ipc-channel makes: the server and its name.
type OneShot = (IpcOneShotServer<Channels>, String);

/// A worker's server. Its folder is gone after `accept`, and when it is dropped.
pub struct Server {
    server: IpcOneShotServer<Channels>,
    folder: Folder,
}

/// A folder of our own, removed on drop.
#[derive(Debug)]
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // The host may have removed it already.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Server").field("folder", &self.folder.0).finish_non_exhaustive()
    }
}

impl Server {
    /// Makes the folder, for this user only, and a server in it; answers the server's name.
    ///
    /// # Errors
    /// See [`ServerError`]; nothing is left behind.
    pub fn create(folder: &Path) -> Result<(Self, String), ServerError> {
        Self::create_by(folder, || environment::with_var("TMPDIR", folder, IpcOneShotServer::new))
    }

    /// As `create`, with another way to have ipc-channel put its socket into the folder.
    pub(super) fn create_by(
        folder: &Path,
        make: impl FnOnce() -> Result<io::Result<OneShot>, EnvironmentError>,
    ) -> Result<(Self, String), ServerError> {
        if !fits(folder) {
            return Err(ServerError::PathTooLong(folder.to_owned()));
        }
        let private = DirBuilder::new().mode(0o700).create(folder);
        private.map_err(|error| ServerError::Folder(folder.to_owned(), error))?;
        let folder = Folder(folder.to_owned());
        let (server, name) =
            make().map_err(ServerError::Environment)?.map_err(ServerError::Socket)?;
        if name.len() > LONGEST_PATH || !Path::new(&name).exists() {
            return Err(ServerError::PathTooLong(name.into()));
        }
        Ok((Self { server, folder }, name))
    }

    /// Takes what the host has sent. Call it when the host is known to have connected: there is no other bound.
    ///
    /// # Errors
    /// [`ServerError::Accept`].
    pub fn accept(self) -> Result<Channels, ServerError> {
        let Self { server, folder } = self;
        let accepted = server.accept();
        drop(folder);
        accepted
            .map(|(_, channels)| channels)
            .map_err(|error| ServerError::Accept(error.to_string()))
    }
}

/// Connects to a worker's server and hands it its ends; answers the host's.
///
/// # Errors
/// When the server is gone or descriptors run out, or the name is none that [`Server::create`] gives.
pub fn connect(name: &str, token: &Token, limit: usize) -> io::Result<HostEnd> {
    // The worker says the name; ipc-channel panics on a NUL, and cuts long names off.
    if name.len() > LONGEST_PATH || name.contains('\0') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no name of a server"));
    }
    see_that_there_is_room()?;
    let opened = catch_unwind(|| {
        let server = IpcSender::connect(name.to_owned())?;
        // The worker's folder is private.
        let path = Path::new(name).with_file_name("host");
        let (end, channels) = host_end(*token, limit, &path)?;
        server.send(channels).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(end)
    });
    opened.unwrap_or_else(|_| Err(io::Error::other("ipc-channel panicked")))
}

/// An error if there are not as many descriptors as `connect` needs.
///
/// ipc-channel panics, and does so ever after, when it cannot have the socket by which it finds out how large packets
/// may be. Another thread may take the descriptors that are seen here; then the panic is caught, and lasts.
fn see_that_there_is_room() -> io::Result<()> {
    // One to connect, four that are handed over or kept, four to duplicate one of them, two for that measurement, and one
    // to spare.
    let _room =
        [(); 6].map(|()| ControlSocket::pair()).into_iter().collect::<io::Result<Vec<_>>>()?;
    Ok(())
}
