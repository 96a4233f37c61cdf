//! The main thread of a child, which is looked at or signalled.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::PoisonError;

use rustix::io::Errno;

use super::{Process, Signal, descendants, folder_of};
use crate::crash::{Look, look};
use crate::syscall::checked;

/// `PIDFD_SIGNAL_THREAD`, since Linux 6.9: the signal is for the thread and not for its process.
const FOR_THREAD: libc::c_uint = 1;

impl Process {
    /// Looks at the main thread of the process, or at that of its child which has this number for
    /// it. The process is not reaped meanwhile.
    pub fn look(&self, child: Option<u32>) -> Look {
        let _not_reaped = self.memory.read().unwrap_or_else(PoisonError::into_inner);
        let pid = self.pid();
        let is_ours = self.is_unreaped();
        match child {
            _ if !is_ours => Look::Hidden,
            None => look(pid),
            Some(number) => {
                let children = descendants::children(pid).unwrap_or_default();
                let child = children.into_iter().find(|child| own_number(*child) == Some(number));
                child.map_or(Look::Hidden, look)
            }
        }
    }

    /// Sends a signal to the main thread of the process, and to no other. It is not an error if the
    /// process has already ended.
    pub fn signal_main_thread(&self, signal: Signal) -> io::Result<()> {
        let number = rustix::process::Signal::from(signal).as_raw();
        let (pidfd, nothing) = (self.pidfd.as_raw_fd(), ptr::null::<libc::siginfo_t>());
        // SAFETY: without more information, the call reads no memory.
        let sent =
            unsafe { syscall!(libc::SYS_pidfd_send_signal, pidfd, number, nothing, FOR_THREAD) };
        if matches!(checked(sent), Ok(_) | Err(Errno::SRCH)) {
            return Ok(());
        }
        let _not_reaped = self.memory.read().unwrap_or_else(PoisonError::into_inner);
        if !self.is_unreaped() {
            return Ok(());
        }
        let pid = self.number();
        // SAFETY: it only sends a signal, and before the process is reaped its number belongs to
        // it.
        match checked(unsafe { syscall!(libc::SYS_tgkill, pid, pid, number) }) {
            Ok(_) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns `false` if the process is gone, whoever has reaped it.
    pub fn is_unreaped(&self) -> bool {
        self.unreaped().is_some()
    }
}

/// Returns the number that a process has in its own namespace.
fn own_number(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(folder_of(pid).join("status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().next_back()?.parse().ok()
}
