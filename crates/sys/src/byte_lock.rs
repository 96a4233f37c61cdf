//! Locks bytes of a file for an open file description (Linux 3.15).
//!
//! The kernel releases the locks when the last descriptor of the description is closed: at the
//! latest with the end of the process, however it ends. Classic record locks, which belong to
//! processes, would be lost when *any* descriptor of the file is closed. Descriptors that a child
//! inherits hold the same locks, so the file must be close-on-exec. The bytes need not exist.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::retry_on_intr;

use crate::syscall::checked;

/// Locks the bytes for writing. Returns `false` if another description has locked some of them.
///
/// Bytes that this description has already locked stay locked.
pub fn try_lock(file: impl AsFd, bytes: Range<u64>) -> io::Result<bool> {
    match control(file, libc::F_OFD_SETLK, libc::F_WRLCK, &bytes) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Releases the bytes.
pub fn unlock(file: impl AsFd, bytes: Range<u64>) -> io::Result<()> {
    control(file, libc::F_OFD_SETLK, libc::F_UNLCK, &bytes).map(drop)
}

/// Returns the range of one lock that another description holds on these bytes; `None` if there is
/// none.
pub fn locked_elsewhere(file: impl AsFd, bytes: Range<u64>) -> io::Result<Option<Range<u64>>> {
    let found = control(file, libc::F_OFD_GETLK, libc::F_WRLCK, &bytes)?;
    if libc::c_int::from(found.l_type) == libc::F_UNLCK {
        return Ok(None);
    }
    let start = u64::try_from(found.l_start).unwrap_or(0);
    // A length of 0 reaches to the end of all files.
    let end = match u64::try_from(found.l_len) {
        Ok(0) | Err(_) => u64::MAX,
        Ok(length) => start.saturating_add(length),
    };
    Ok(Some(start.max(bytes.start)..end.min(bytes.end)))
}

fn control(
    file: impl AsFd,
    command: libc::c_int,
    kind: libc::c_int,
    bytes: &Range<u64>,
) -> io::Result<libc::flock> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    // A length of 0 would mean everything from the start on.
    let length = bytes.end.checked_sub(bytes.start).filter(|length| *length > 0);
    // SAFETY: `flock` is a C struct of integers, for which zeros are a valid value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::c_short::try_from(kind).map_err(|_| invalid())?;
    lock.l_whence = libc::c_short::try_from(libc::SEEK_SET).map_err(|_| invalid())?;
    lock.l_start = libc::off_t::try_from(bytes.start).map_err(|_| invalid())?;
    lock.l_len = libc::off_t::try_from(length.ok_or_else(invalid)?).map_err(|_| invalid())?;
    retry_on_intr(|| {
        // SAFETY: the descriptor is open for as long as `file` is borrowed, and these commands read
        // and write one `flock`.
        checked(unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, &raw mut lock) })
    })?;
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::private_folder::PrivateFolder;

    fn open_twice(name: &str) -> (File, File) {
        let path = std::env::temp_dir().join(format!("brigade-{name}-{}", std::process::id()));
        let folder = PrivateFolder::open(&path).unwrap();
        let files = (folder.file("lock").unwrap(), folder.file("lock").unwrap());
        std::fs::remove_dir_all(path).unwrap();
        files
    }

    #[test]
    fn two_descriptions_never_lock_the_same_byte() {
        let (ours, theirs) = open_twice("bytes");
        assert!(try_lock(&ours, 2..5).unwrap());
        assert!(try_lock(&ours, 2..3).unwrap(), "our own lock is in our way");
        assert!(!try_lock(&theirs, 0..3).unwrap());
        assert!(try_lock(&theirs, 5..7).unwrap());
        assert_eq!(locked_elsewhere(&theirs, 0..100).unwrap(), Some(2..5));
        assert_eq!(locked_elsewhere(&ours, 0..6).unwrap(), Some(5..6));
        unlock(&ours, 2..4).unwrap();
        assert!(try_lock(&theirs, 3..4).unwrap());
        assert_eq!(locked_elsewhere(&ours, 0..4).unwrap(), Some(3..4));
    }

    #[test]
    fn closing_the_file_releases_its_locks() {
        let (ours, theirs) = open_twice("close");
        assert!(try_lock(&ours, 0..64).unwrap());
        drop(ours);
        assert_eq!(locked_elsewhere(&theirs, 0..64).unwrap(), None);
    }

    #[test]
    fn an_empty_range_is_an_error() {
        let (ours, _) = open_twice("empty");
        assert_eq!(try_lock(&ours, 3..3).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
