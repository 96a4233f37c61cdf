//! A socket's file, which outlives a server that was killed.
//!
//! A server creates its file under a lock, on a file beside it that exists only meanwhile. The
//! holder of the lock knows that nobody else is between `bind` and `listen`; so a socket that
//! refuses connections was left behind, and is replaced. A process releases the lock when it ends,
//! however it ends.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, SocketFlags, connect};

use super::unix_socket;

/// The socket file that a server has created.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    file: (u64, u64),
}

impl SocketFile {
    /// Calls `open`, which binds and listens, under the lock; removes a socket left behind first.
    pub(super) fn create(
        path: &Path,
        address: &SocketAddrUnix,
        open: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<Self> {
        let _lock = SocketFileLock::take(path)?;
        if is_left_behind(path, address)? {
            fs::remove_file(path)?;
        }
        open()?;
        let file = identity(&fs::symlink_metadata(path)?);
        Ok(Self { path: path.to_owned(), file })
    }

    /// Removes the socket, if it is still the same file.
    pub(super) fn clear(&self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| identity(&found) == self.file) {
            // Somebody may have removed it just now.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(file: &fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Returns `true` if there is a socket to which nobody listens. Other files stay, and `bind`
/// reports them.
fn is_left_behind(path: &Path, address: &SocketAddrUnix) -> io::Result<bool> {
    if !fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        return Ok(false);
    }
    let probe = unix_socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    Ok(connect(&probe, address) == Err(Errno::CONNREFUSED))
}

/// Held while a socket file is created.
struct SocketFileLock {
    path: PathBuf,
    _file: File,
}

impl SocketFileLock {
    fn take(socket: &Path) -> io::Result<Self> {
        let mut path = OsString::from(socket);
        path.push(".lock");
        let path = PathBuf::from(path);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        // Somebody may have put a pipe there: opening it is then an error, and does not wait for a
        // reader.
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = options.open(&path)?;
        // Another server that is being started holds it, or has removed it in between: that server
        // wins.
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| Errno::ADDRINUSE)?;
        let found = fs::symlink_metadata(&path);
        if !found.is_ok_and(|found| {
            file.metadata().is_ok_and(|ours| identity(&ours) == identity(&found))
        }) {
            return Err(Errno::ADDRINUSE.into());
        }
        Ok(Self { path, _file: file })
    }
}

impl Drop for SocketFileLock {
    fn drop(&mut self) {
        // Removed while it is locked, so that nobody locks a file about to be removed and believes
        // to be alone.
        let _ = fs::remove_file(&self.path);
    }
}
