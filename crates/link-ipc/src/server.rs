//! Connects the two ends: a one-shot server that the worker creates and the host connects to.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::path::{Component, Path, PathBuf};

use brigade_sys::catch_panic::catch_panic;
use brigade_sys::control::ControlSocket;
use brigade_sys::environment::{self, EnvironmentError};
use brigade_wire::handshake::Token;
use ipc_channel::ipc::{IpcOneShotServer, IpcSender};

use crate::Channels;
use crate::host::{HostEnd, host_end};

/// A socket's path has room for 107 bytes; ipc-channel silently truncates longer ones.
const MAX_PATH: usize = 100;

/// Length of the suffix that ipc-channel appends to the folder: `/.tmpXXXXXX/socket`.
const SUFFIX: usize = 18;

/// Returns the folder that the worker creates for its server, with a path short enough for a
/// socket.
pub(crate) fn folder(pid: u32) -> Result<PathBuf, String> {
    let name = format!("brigade-{pid}-{}", Token::random().short());
    let preferred = std::env::temp_dir().join(&name);
    if preferred.to_str().is_none() {
        return Err(format!(
            "the path of the temporary folder ({}) is not UTF-8; set TMPDIR to a UTF-8 path, or use rings",
            preferred.display()
        ));
    }
    if fits(&preferred) {
        return Ok(preferred);
    }
    let fallback = Path::new("/tmp").join(name);
    if fallback.parent().is_some_and(Path::is_dir) {
        Ok(fallback)
    } else {
        Err(format!(
            "the path of the temporary folder ({}) is too long for a socket; set TMPDIR to a shorter one",
            preferred.display()
        ))
    }
}

/// Returns `true` if the path of a server in this folder is short enough.
fn fits(folder: &Path) -> bool {
    folder.as_os_str().len() + SUFFIX <= MAX_PATH
}

/// The reason why a worker's server could not be created or used.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The folder's path is too long.
    #[error("the path {} is too long for a socket; set TMPDIR to a shorter one", .0.display())]
    PathTooLong(PathBuf),
    /// The folder could not be created.
    #[error("cannot create the folder {} for a socket; set TMPDIR to a folder that can be written to", .0.display())]
    Folder(PathBuf, #[source] io::Error),
    /// The variable that tells ipc-channel where to put its socket could not be set.
    #[error("cannot set TMPDIR for the socket's folder; `Link::Ring` needs no folder")]
    Environment(#[source] EnvironmentError),
    /// The socket could not be created.
    #[error("cannot create a socket")]
    Socket(#[source] io::Error),
    /// The host did not connect, or sent something else.
    #[error("cannot receive the link: {0}")]
    Accept(String),
    /// Another process than the host connected.
    #[error("a connection to the socket of the link had the wrong token")]
    Token,
}

/// The server and its name, as ipc-channel creates them.
type OneShot = (IpcOneShotServer<Channels>, String);

/// A worker's server. Its folder is removed by `accept` and on drop.
pub struct Server {
    server: IpcOneShotServer<Channels>,
    folder: Folder,
}

/// A private folder, removed on drop.
#[derive(Debug)]
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // The host may have removed it already.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

brigade_sys::debug_fields! {
    impl Server { |it| folder: it.folder.0 }
}

impl Server {
    /// Creates the folder, for this user only, and a server in it. Returns the server and its name.
    ///
    /// # Errors
    /// See [`ServerError`]; nothing is left behind.
    pub fn create(folder: &Path) -> Result<(Self, String), ServerError> {
        Self::create_by(folder, || environment::with_var("TMPDIR", folder, IpcOneShotServer::new))
    }

    /// Like `create`, with another way to make ipc-channel put its socket into the folder.
    pub(crate) fn create_by(
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
        if name.len() > MAX_PATH || !Path::new(&name).exists() {
            return Err(ServerError::PathTooLong(name.into()));
        }
        Ok((Self { server, folder }, name))
    }

    /// Takes the host's message. Call it only after the host has connected: otherwise it blocks
    /// without a limit.
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

/// Connects to a worker's server in a folder and hands over the worker's ends of the link. Returns
/// the host's end.
///
/// # Errors
/// If the server is gone, descriptors run out, or [`Server::create`] cannot have returned the name.
pub fn connect(folder: &Path, name: &str, token: &Token, limit: usize) -> io::Result<HostEnd> {
    if !is_server(folder, Path::new(name)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a server"));
    }
    check_free_descriptors()?;
    let opened = catch_panic(|| {
        let server = IpcSender::connect(name.to_owned())?;
        // The worker's folder is private.
        let path = Path::new(name).with_file_name("host");
        let (end, channels) = host_end(*token, limit, &path)?;
        server.send(channels).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(end)
    });
    opened.unwrap_or_else(|_| Err(io::Error::other("ipc-channel panicked")))
}

/// Returns `true` if a path is that of a socket in a folder, or in a folder in there. The worker
/// reports it: it must not lead the host to the socket of somebody else. ipc-channel panics on a
/// NUL, truncates long names, and keeps a descriptor for each connection that fails.
fn is_server(folder: &Path, path: &Path) -> bool {
    let Ok(inside) = path.strip_prefix(folder) else { return false };
    let is_plain = inside.components().all(|it| matches!(it, Component::Normal(_)));
    let kind = |path: &Path| std::fs::symlink_metadata(path).map(|file| file.file_type());
    let folders = path.ancestors().skip(1).take_while(|it| it.starts_with(folder));
    path.as_os_str().len() <= MAX_PATH
        && is_plain
        && kind(path).is_ok_and(|it| it.is_socket())
        && folders.into_iter().all(|it| kind(it).is_ok_and(|it| it.is_dir()))
}

/// Returns an error if fewer descriptors are left than `connect` needs.
///
/// ipc-channel panics, and panics again on every later use, if it cannot create the socket with
/// which it measures the maximum size of packets. Another thread may take the descriptors that are
/// free here; then the panic is caught, and the damage lasts.
fn check_free_descriptors() -> io::Result<()> {
    // One to connect, four that are handed over or kept, four to duplicate one of them, two for
    // that measurement, and one to spare.
    let _room =
        [(); 6].map(|()| ControlSocket::pair()).into_iter().collect::<io::Result<Vec<_>>>()?;
    Ok(())
}

brigade_sys::debug_as_text!(ServerError);
