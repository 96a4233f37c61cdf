//! Starts programs at the cost of `vfork`, with settings that only the child itself can make.
//!
//! Another program cannot be asked to arm `PR_SET_PDEATHSIG`, to pin itself or to lower its
//! priority, and the standard library would fork the whole host for it (`pre_exec`). So the child
//! runs a few system calls of ours between `clone(CLONE_VM | CLONE_VFORK)` and `execve`, as the C
//! library's `posix_spawn` does. Letting the parent continue meanwhile was tried and costs more
//! than it saves (docs/decisions/0012):
//!
//! 1. All signals are blocked while parent and child share their memory, so no handler of the host
//!    runs in the child.
//! 2. The launching thread is suspended until the child has executed its program or ended. Nothing
//!    that the child reads can change meanwhile, because other threads cannot reach its data.
//! 3. The child only makes system calls: it allocates nothing, takes no lock and cannot panic.
//! 4. Before it executes anything it leads its own group, is bound to the death of its parent (but
//!    a worker binds itself), and is listed in its [`GroupSlot`]. A parent that dies at any moment
//!    leaves no unknown child.

mod child;
mod failure;
mod program;

pub use failure::{LaunchError, LaunchStage};
pub use program::{FileId, Program};

use std::ffi::{CStr, CString, c_char, c_int};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::io::Errno;
use rustix::process::Pid;

use crate::confine::Restrictions;
use crate::descriptors::above_streams;
use crate::guardian::GroupSlot;
use crate::process::Process;
use crate::resource_limit::Limited;
use crate::signals::Blocked;
use crate::syscall::checked;
use child::ChildData;

/// A program's start settings. Everything is prepared beforehand; nothing is allocated in the
/// child.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The program's possible paths; the first that can be executed is taken.
    pub program: &'a Program,
    /// The arguments, the first of which is the program's name.
    pub arguments: &'a [CString],
    /// The whole environment, as `NAME=value`.
    pub environment: &'a [&'a CStr],
    /// The folder to start in; `None` for the parent's.
    pub folder: Option<&'a CStr>,
    /// The entry in which the child lists itself for the guardian.
    pub slot: Option<&'a GroupSlot>,
    /// Settings that are not part of the command line.
    pub settings: LaunchSettings<'a>,
}

/// The settings of a start that are not part of the command line.
#[derive(Debug, Clone, Copy)]
pub struct LaunchSettings<'a> {
    /// Standard input, output and error. One that is in its place already stays as it is, even if
    /// it is closed.
    pub streams: [BorrowedFd<'a>; 3],
    /// The processors to run on, one bit each; `None` for those of the launching thread.
    pub affinity: Option<&'a [u64]>,
    /// Amount to add to the niceness.
    pub nice: Option<i32>,
    /// The soft limit on open descriptors; `None` for that of this process.
    pub open_files: Option<u64>,
    /// The rights and resources that the program does without.
    pub confinement: Confinement<'a>,
    /// The program is a worker: it binds itself to this process, and unblocks the signals that a
    /// terminal sends ([`signals::reset`](crate::signals::reset)).
    pub is_worker: bool,
}

impl<'a> LaunchSettings<'a> {
    /// Returns those of a program that keeps what it inherits, except its streams.
    pub fn new(streams: [BorrowedFd<'a>; 3]) -> Self {
        Self {
            streams,
            affinity: None,
            nice: None,
            open_files: None,
            confinement: Confinement::default(),
            is_worker: false,
        }
    }
}

/// Rights and resources that a program does without, it and everything that it starts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Confinement<'a> {
    /// Files to which the child writes a 0 to move itself into its control groups.
    pub doors: &'a [File],
    /// Limits on resources.
    pub limits: &'a [(Limited, u64)],
    /// The sandbox, in which it must be allowed to execute the program.
    pub sandbox: Option<&'a Restrictions>,
}

/// Starts programs. It keeps the stack on which children run until they execute their program.
///
/// The programs are killed when the *thread* that launched them ends: launch from one that outlives
/// them.
#[derive(Debug)]
pub struct Launcher {
    stack: Box<[MaybeUninit<u128>]>,
}

/// Size of the child's stack: its calls need less than a page, and the C library's wrappers not
/// much.
const STACK_BYTES: usize = 64 * 1024;

/// The first descriptor that is not a standard stream.
const FIRST_OWN: c_int = 3;

impl Launcher {
    /// Creates a launcher with its stack.
    pub fn new() -> Self {
        Self { stack: vec![MaybeUninit::uninit(); STACK_BYTES / size_of::<u128>()].into() }
    }

    /// Starts a program as the leader of a new group, and returns once it is executing.
    ///
    /// # Errors
    /// [`LaunchError`] has the stage at which the child failed, and the cause; the child is reaped
    /// then.
    pub fn launch(&mut self, launch: &Launch<'_>) -> Result<Process, LaunchError> {
        let failed = |error| LaunchError::new(LaunchStage::Streams, error);
        let moved = moved(launch.settings.streams).map_err(failed)?;
        let mut streams = launch.settings.streams.map(|stream| stream.as_raw_fd());
        for (stream, moved) in streams.iter_mut().zip(&moved) {
            *stream = moved.as_ref().map_or(*stream, AsRawFd::as_raw_fd);
        }
        let arguments = pointers(launch.arguments);
        let environment = pointers(launch.environment);
        let candidates = pointers(launch.program.candidates());
        let mut child = ChildData {
            candidates: candidates.as_ptr(),
            arguments: arguments.as_ptr(),
            environment: environment.as_ptr(),
            folder: launch.folder.map_or(ptr::null(), CStr::as_ptr),
            streams,
            slot: launch.slot,
            settings: launch.settings,
            parent: rustix::process::getpid().as_raw_nonzero().get(),
            failed: None,
        };
        let mut pidfd: c_int = -1;
        let pid = self.clone_child(&mut child, &mut pidfd)?;
        // SAFETY: the kernel has just created this descriptor for us, and nobody else knows it.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        let process = Process::new(pid, pidfd);
        match child.failed {
            None => Ok(process),
            Some((stage, errno)) => {
                if let Some(slot) = launch.slot {
                    slot.clear();
                }
                // Reaps the child, which has ended.
                drop(process);
                Err(LaunchError::new(stage, io::Error::from_raw_os_error(errno)))
            }
        }
    }

    fn clone_child(
        &mut self,
        child: &mut ChildData<'_>,
        pidfd: &mut c_int,
    ) -> Result<Pid, LaunchError> {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
        let top = self.stack.as_mut_ptr_range().end;
        let _blocked = Blocked::all();
        // SAFETY: the stack is ours, aligned to 16 bytes, and this thread is suspended until the
        // child needs it no more; the same holds for `child`, of which the child has the only
        // reference meanwhile. `child::run` only makes system calls. With CLONE_PIDFD the kernel
        // stores the descriptor where the parent's tid would go.
        let pid = unsafe {
            libc::clone(
                child::run,
                top.cast(),
                flags,
                ptr::from_mut(child).cast(),
                ptr::from_mut(pidfd),
            )
        };
        let failure = |error| LaunchError::new(LaunchStage::Process, error);
        checked(pid).map_err(|error| failure(error.into()))?;
        Pid::from_raw(pid).ok_or_else(|| failure(Errno::SRCH.into()))
    }
}

impl Default for Launcher {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns copies of the streams that the child would overwrite before it moves them.
fn moved(streams: [BorrowedFd<'_>; 3]) -> io::Result<[Option<OwnedFd>; 3]> {
    let mut moved = [None, None, None];
    for ((stream, target), moved) in streams.iter().zip(0..).zip(&mut moved) {
        let number = stream.as_raw_fd();
        if number < FIRST_OWN && number != target {
            *moved = Some(above_streams(stream)?);
        }
    }
    Ok(moved)
}

/// Returns a list in the form that `execve` needs: ended by a null pointer.
fn pointers(strings: &[impl AsRef<CStr>]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ref().as_ptr()).chain([ptr::null()]).collect()
}

#[cfg(test)]
mod tests;
