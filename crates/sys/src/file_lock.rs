//! A lock on a whole file, for programs that would write over each other's output.
//!
//! The kernel releases it when the file is closed: at the latest with the end of the process,
//! however it ends.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

/// Locks a file. Returns `false` if it is locked through another open file description.
///
/// # Errors
/// If the file system has no locks.
pub fn try_lock(file: impl AsFd) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Locks a file, and waits until nobody else has locked it.
///
/// # Errors
/// If the file system has no locks.
pub fn lock(file: &File) -> io::Result<()> {
    Ok(retry_on_intr(|| flock(file, FlockOperation::LockExclusive))?)
}

/// Locks a file like [`lock`], and returns `false` if somebody else has locked it for longer than
/// `timeout`.
///
/// # Errors
/// If the file system has no locks, or no thread can be started.
pub fn lock_within(file: &File, timeout: Duration) -> io::Result<bool> {
    let (waiting, (done, locked)) = (file.try_clone()?, channel());
    // A lock cannot be awaited with a timeout. If it comes too late, it is released at once,
    // because the caller has closed its file by then.
    thread::Builder::new().name("brigade-lock".to_owned()).spawn(move || {
        let _ = done.send(lock(&waiting));
    })?;
    locked.recv_timeout(timeout).map_or(Ok(false), |locked| locked.map(|()| true))
}

/// Returns `true` if the lock of a file may be held only by a process that inherited the file: one
/// that is being started, and has not replaced its program yet.
///
/// That is so if the process that has locked it has ended, or is this one.
pub fn may_be_inherited(file: &File) -> bool {
    holder(file).is_none_or(|pid| {
        if pid == std::process::id() {
            return true;
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest.starts_with(['Z', 'X']));
        state.unwrap_or(true)
    })
}

/// Returns the process that has locked a file, if the system tells.
pub fn holder(file: &File) -> Option<u32> {
    let inode = file.metadata().ok()?.ino().to_string();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| holder_in(line, &inode))
}

/// Reads a line such as `1: FLOCK  ADVISORY  WRITE 123 00:1f:456 0 EOF`.
fn holder_in(line: &str, inode: &str) -> Option<u32> {
    let mut words = line.split_whitespace().skip(1);
    if words.next() != Some("FLOCK") {
        return None;
    }
    let pid = words.nth(2)?.parse().ok()?;
    let (_, number) = words.next()?.rsplit_once(':')?;
    (number == inode && pid > 0).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_file_names_its_holder() {
        let path = std::env::temp_dir().join(format!("brigade-lock-{}", std::process::id()));
        let first = File::create(&path).expect("a file");
        let second = File::open(&path).expect("a file");
        fs::remove_file(&path).expect("own file");
        assert!(try_lock(&first).expect("possible"));
        assert!(!try_lock(&second).expect("possible"));
        assert_eq!(holder(&second), Some(std::process::id()));
        drop(first);
        assert!(try_lock(&second).expect("possible"));
    }

    #[test]
    fn only_the_line_of_the_file_counts() {
        assert_eq!(holder_in("1: FLOCK  ADVISORY  WRITE 123 00:1f:456 0 EOF", "456"), Some(123));
        assert_eq!(holder_in("1: FLOCK  ADVISORY  WRITE 123 00:1f:456 0 EOF", "56"), None);
        assert_eq!(holder_in("2: POSIX  ADVISORY  WRITE 9 00:1f:456 0 0", "456"), None);
        assert_eq!(holder_in("", "1"), None);
    }
}
