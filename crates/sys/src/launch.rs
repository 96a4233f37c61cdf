//! Starting other people's programs: at the price of `vfork`, with what only the child itself can set.
//!
//! A program that is not ours cannot be asked to arm `PR_SET_PDEATHSIG`, to pin itself or to lower its priority, and the
//! standard library would fork the whole host for it (`pre_exec`). So the child runs a few system calls of ours between
//! `clone(CLONE_VM)` and `execve`, as the C library's `posix_spawn` does. Other than there the parent goes on meanwhile:
//! waiting for a child to be scheduled on the core that it is pinned to would cost more than everything else
//! (docs/decisions/0012).
//!
//! 1. All signals are blocked when the child begins, so no handler of the host runs in it.
//! 2. The child makes raw system calls only: it allocates nothing, takes no lock, cannot panic, and leaves `errno` alone.
//! 3. What it reads was prepared for it and belongs to the [`Leader`], which is not dropped before the child has ended.
//! 4. Before it executes anything it leads its own group, is bound to the death of its parent, and stands in its
//!    [`GroupSlot`](crate::guardian::GroupSlot). A parent that dies at any moment leaves no unknown child.
//! 5. Why it could not execute its program is known when it has ended: [`Ended`] says so.

mod child;
mod failure;
mod leader;
mod program;
mod raw;

pub use failure::{LaunchError, LaunchStage};
pub use leader::{Ended, Leader, Usage};
pub use program::Program;

use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::guardian::GroupSlot;
use child::Child;

/// What a program is started with. Everything is prepared beforehand; nothing is allocated in the child.
#[derive(Debug)]
pub struct Launch<'a> {
    /// Where the program may be; the first that can be executed is taken.
    pub program: Arc<Program>,
    /// Its arguments, the first of which is its name.
    pub arguments: Vec<CString>,
    /// Its whole environment, as `NAME=value`.
    pub environment: Vec<Arc<CStr>>,
    /// The folder to start in; the parent's when `None`.
    pub folder: Option<CString>,
    /// Standard input, output and error. Each must be 3 or above, so that none is overwritten before it is in place.
    pub streams: [BorrowedFd<'a>; 3],
    /// The processors to run on, one bit each; the parent's when empty.
    pub affinity: Vec<u64>,
    /// What to add to the niceness.
    pub nice: i32,
    /// Where the child announces itself to the guardian.
    pub slot: Option<GroupSlot>,
}

/// How many words the child's stack has: its calls need less than a page.
const STACK_WORDS: usize = 16 * 1024 / size_of::<u128>();

/// The first descriptor that is not a standard stream.
const FIRST_OWN: c_int = 3;

/// Starts a program as the leader of a new group. It returns before the program executes: should that fail, the leader
/// ends, and [`Leader::try_reap`] says why.
///
/// The program is killed when the *thread* that launched it ends: launch from one that outlives it.
///
/// # Errors
/// [`LaunchError`] when there can be no process.
pub fn launch(launch: Launch<'_>) -> Result<Leader, LaunchError> {
    let streams = launch.streams.map(|stream| stream.as_raw_fd());
    if streams.iter().any(|stream| *stream < FIRST_OWN) {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "a stream is below 3");
        return Err(LaunchError::new(LaunchStage::Streams, error));
    }
    let mut stack = Vec::with_capacity(STACK_WORDS);
    stack.resize(STACK_WORDS, MaybeUninit::uninit());
    let mut child = Box::new(Child {
        candidates: pointers(launch.program.candidates()),
        arguments: pointers(&launch.arguments),
        environment: pointers(&launch.environment),
        folder: launch.folder,
        streams,
        affinity: launch.affinity,
        nice: launch.nice,
        slot: launch.slot,
        parent: rustix::process::getpid().as_raw_nonzero().get(),
        failed: AtomicU64::new(0),
        stack,
        _owned: (launch.program, launch.arguments, launch.environment),
    });
    let flags = libc::CLONE_VM | libc::CLONE_PIDFD | libc::SIGCHLD;
    let top = child.stack.as_mut_ptr_range().end;
    let mut pidfd: c_int = -1;
    let blocked = BlockedSignals::new();
    // SAFETY: the stack belongs to the child and is aligned to 16 bytes. `child` is on the heap, is not changed from here
    // on but for its atomic word, and the leader keeps it until the process has ended. `child::run` makes raw system calls
    // only. With CLONE_PIDFD the kernel stores the descriptor where the parent's tid would go.
    let pid = unsafe {
        let shared = ptr::from_ref::<Child>(&child).cast_mut().cast();
        libc::clone(child::run, top.cast(), flags, shared, &raw mut pidfd)
    };
    let error = io::Error::last_os_error();
    drop(blocked);
    if pid == -1 {
        return Err(LaunchError::new(LaunchStage::Process, error));
    }
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Leader::new(pid, pidfd, child))
}

/// A list as `execve` wants it: ended by a null pointer.
fn pointers(strings: &[impl AsRef<CStr>]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ref().as_ptr()).chain([ptr::null()]).collect()
}

/// All signals of this thread are blocked as long as this lives.
struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    fn new() -> Self {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: both sets are ours; `sigfillset` fills the first before it is read, and `pthread_sigmask` fails for
        // no valid request, so the second is filled.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            Self(before.assume_init())
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set was filled by the call that blocked the signals.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests;
