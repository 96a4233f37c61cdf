//! Starting other people's programs: at the price of `vfork`, with what only the child itself can set.
//!
//! A program that is not ours cannot be asked to arm `PR_SET_PDEATHSIG`, to pin itself or to lower its priority, and the
//! standard library would fork the whole host for it (`pre_exec`). So the child runs a few system calls of ours between
//! `clone(CLONE_VM | CLONE_VFORK)` and `execve`, as the C library's `posix_spawn` does. Letting the parent go on meanwhile
//! was tried and costs more than it saves (docs/decisions/0012):
//!
//! 1. All signals are blocked while parent and child share their memory, so no handler of the host runs in the child.
//! 2. The thread that launches is suspended until the child has executed its program or ended; nothing of what the child
//!    reads can change meanwhile, but for what other threads may change, which is nothing that it is given.
//! 3. The child makes system calls only: it allocates nothing, takes no lock and cannot panic.
//! 4. Before it executes anything it leads its own group, is bound to the death of its parent, and stands in its
//!    [`GroupSlot`]. A parent that dies at any moment leaves no unknown child.

mod child;
mod failure;
mod leader;
mod program;

pub use failure::{LaunchError, LaunchStage};
pub use leader::{Ended, Leader, Usage};
pub use program::Program;

use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::guardian::GroupSlot;
use crate::signals::Blocked;
use child::Child;

/// What a program is started with. Everything is prepared beforehand; nothing is allocated in the child.
#[derive(Debug)]
pub struct Launch<'a> {
    /// Where the program may be; the first that can be executed is taken.
    pub program: &'a Program,
    /// Its arguments, the first of which is its name.
    pub arguments: &'a [CString],
    /// Its whole environment, as `NAME=value`.
    pub environment: &'a [&'a CStr],
    /// The folder to start in; the parent's when `None`.
    pub folder: Option<&'a CStr>,
    /// Standard input, output and error. Each must be 3 or above, so that none is overwritten before it is in place.
    pub streams: [BorrowedFd<'a>; 3],
    /// The processors to run on, one bit each; the parent's when `None`.
    pub affinity: Option<&'a [u64]>,
    /// What to add to the niceness.
    pub nice: Option<i32>,
    /// Where the child announces itself to the guardian.
    pub slot: Option<&'a GroupSlot>,
}

/// Starts programs. Keeps the stack on which children run until they execute their program.
///
/// The programs are killed when the *thread* that launched them ends: launch from one that outlives them.
#[derive(Debug)]
pub struct Launcher {
    stack: Box<[MaybeUninit<u128>]>,
}

/// The child's stack: its calls need less than a page, and the C library's wrappers not much.
const STACK_BYTES: usize = 64 * 1024;

/// The first descriptor that is not a standard stream.
const FIRST_OWN: c_int = 3;

impl Launcher {
    /// A launcher with its stack.
    pub fn new() -> Self {
        Self { stack: vec![MaybeUninit::uninit(); STACK_BYTES / size_of::<u128>()].into() }
    }

    /// Starts a program as the leader of a new group, and returns when it is executing.
    ///
    /// # Errors
    /// [`LaunchError`] says at what stage the child failed, and why; it is reaped then.
    pub fn launch(&mut self, launch: &Launch<'_>) -> Result<Leader, LaunchError> {
        let streams = launch.streams.map(|stream| stream.as_raw_fd());
        if streams.iter().any(|stream| *stream < FIRST_OWN) {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "a stream is below 3");
            return Err(LaunchError::new(LaunchStage::Streams, error));
        }
        let arguments = pointers(launch.arguments);
        let environment = pointers(launch.environment);
        let candidates = pointers(launch.program.candidates());
        let mut child = Child {
            candidates: candidates.as_ptr(),
            arguments: arguments.as_ptr(),
            environment: environment.as_ptr(),
            folder: launch.folder.map_or(ptr::null(), CStr::as_ptr),
            streams,
            affinity: launch.affinity.unwrap_or_default(),
            nice: launch.nice.unwrap_or(0),
            slot: launch.slot,
            parent: rustix::process::getpid().as_raw_nonzero().get(),
            failed: None,
        };
        let mut pidfd: c_int = -1;
        let pid = self.clone_child(&mut child, &mut pidfd)?;
        // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        let leader = Leader::new(pid, pidfd);
        match child.failed {
            None => Ok(leader),
            Some((stage, errno)) => {
                // Dropping the leader reaps the child, which has ended.
                drop(leader);
                if let Some(slot) = launch.slot {
                    slot.clear();
                }
                Err(LaunchError::new(stage, io::Error::from_raw_os_error(errno)))
            }
        }
    }

    fn clone_child(
        &mut self,
        child: &mut Child<'_>,
        pidfd: &mut c_int,
    ) -> Result<c_int, LaunchError> {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
        let top = self.stack.as_mut_ptr_range().end;
        let _blocked = Blocked::all();
        // SAFETY: the stack is ours, aligned to 16 bytes, and this thread is suspended until the child needs it no
        // more; the same holds for `child`, of which the child has the only reference meanwhile. `child::run` makes
        // system calls only. With CLONE_PIDFD the kernel stores the descriptor where the parent's tid would go.
        let pid = unsafe {
            libc::clone(
                child::run,
                top.cast(),
                flags,
                ptr::from_mut(child).cast(),
                ptr::from_mut(pidfd),
            )
        };
        if pid == -1 {
            return Err(LaunchError::new(LaunchStage::Process, io::Error::last_os_error()));
        }
        Ok(pid)
    }
}

impl Default for Launcher {
    fn default() -> Self {
        Self::new()
    }
}

/// A list as `execve` wants it: ended by a null pointer.
fn pointers(strings: &[impl AsRef<CStr>]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ref().as_ptr()).chain([ptr::null()]).collect()
}

#[cfg(test)]
mod tests;
