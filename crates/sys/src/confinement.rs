//! Notices that this process has given up rights since it started.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, open};

/// The rights of this process at some time, for a later comparison.
#[derive(Debug)]
pub struct Rights {
    /// `/proc/self/status`, which stays readable when no more files can be opened.
    status: OwnedFd,
    seccomp: Vec<u8>,
}

impl Rights {
    /// Returns the present rights.
    ///
    /// # Errors
    /// The system's error, if there is no `/proc`.
    pub fn now() -> io::Result<Self> {
        let status = open("/proc/self/status", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let seccomp = seccomp(&status)?;
        Ok(Self { status, seccomp })
    }

    /// Returns `true` if this process has had no more seccomp filters since.
    pub fn allow_calls(&self) -> bool {
        seccomp(&self.status).is_ok_and(|now| now == self.seccomp)
    }

    /// Returns `true` if this process can still open its own executable. It does not try if it has
    /// more seccomp filters now, because they may end a process that tries.
    pub fn allow_files(&self) -> bool {
        self.allow_calls()
            && open("/proc/self/exe", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).is_ok()
    }
}

/// Returns the lines about seccomp, which count the filters.
fn seccomp(status: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut text = [0; 8192];
    let length = rustix::io::pread(status, &mut text, 0)?;
    let lines = text[..length].split(|byte| *byte == b'\n');
    Ok(lines.filter(|line| line.starts_with(b"Seccomp")).flatten().copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_a_sandbox_may_open_files() {
        let rights = Rights::now().expect("/proc");
        assert!(rights.allow_files());
        assert!(!rights.seccomp.is_empty());
    }
}
