//! Copies this process as a sibling: a child of its own parent.
//!
//! `fork` makes a child of the caller. A server that forks workers on request makes children of its
//! host, so that the host has their exit statuses, their pidfds and their parent-death signal, as
//! if it had executed them itself (`CLONE_PARENT`).
//!
//! - Only a process with a single thread is copied: nobody holds a lock of the C library or of this
//!   program that the copy would wait for.
//! - The C library knows nothing of the call. It caches the number of the thread, with which
//!   `raise` and `abort` would signal the original; the kernel writes the new number to the same
//!   place, which it has known since the start of the process (`PR_GET_TID_ADDRESS`). Handlers of
//!   `pthread_atfork` do not run.
//! - The number of each copy is in memory that the parent shares before the copy runs. A parent
//!   whose server is killed before it has answered finds its child there.

use std::ffi::{c_int, c_void};
use std::io::{self, Write};
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::ptr;
use std::sync::atomic::Ordering;

use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid};

use crate::environment::require_one_thread;
use crate::launch::{LaunchError, LaunchStage};
use crate::process::Process;
use crate::segment::Segment;

/// Makes copies of this process, on its main thread.
#[derive(Debug)]
pub struct Copier {
    born: Segment,
    /// The place of the C library's number of this thread.
    thread: *mut libc::pid_t,
    /// The list of robust locks, which the kernel forgets in a copy.
    robust: (*mut c_void, usize),
    _not_send: PhantomData<*const ()>,
}

/// The process that goes on.
#[derive(Debug)]
pub enum Copied {
    /// The one that was copied, with a pidfd of the copy.
    Original(OwnedFd),
    /// The copy.
    Copy,
}

/// The number of the last copy, for the parent.
#[derive(Debug)]
pub struct Born(Segment);

impl Copier {
    /// Prepares copies of this process. `born` is the parent's [`Born::descriptor`].
    ///
    /// # Errors
    /// If this process cannot be copied safely; the text says why.
    pub fn new(born: OwnedFd) -> Result<Self, String> {
        single_thread()?;
        has_clone3()?;
        let born = Segment::open(born, 1).map_err(|error| format!("no shared memory: {error}"))?;
        let mut thread: *mut libc::pid_t = ptr::null_mut();
        // SAFETY: the kernel writes one pointer there.
        let found = unsafe { libc::prctl(libc::PR_GET_TID_ADDRESS, &raw mut thread) };
        let place = (found == 0).then(|| ptr::NonNull::new(thread)).flatten();
        // SAFETY: the address that the C library gave to the kernel for its own thread.
        let is_number = place.is_some_and(|it| unsafe { it.read() } == getpid().as_raw_pid());
        if !is_number {
            return Err("its C library keeps the number of a thread at an unknown place".into());
        }
        let mut robust = (ptr::null_mut(), 0);
        // SAFETY: the kernel writes a pointer and a length there.
        unsafe {
            syscall!(libc::SYS_get_robust_list, 0, &raw mut robust.0, &raw mut robust.1);
        }
        Ok(Self { born, thread, robust, _not_send: PhantomData })
    }

    /// Copies this process.
    ///
    /// # Errors
    /// If another thread runs by now, or no process is left.
    pub fn copy(&self) -> io::Result<Copied> {
        single_thread().map_err(io::Error::other)?;
        let mut pidfd: RawFd = -1;
        let flags = libc::CLONE_PARENT
            | libc::CLONE_PIDFD
            | libc::CLONE_PARENT_SETTID
            | libc::CLONE_CHILD_SETTID
            | libc::CLONE_CHILD_CLEARTID;
        // SAFETY: plain numbers.
        let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
        arguments.flags = u64::from(flags.cast_unsigned());
        arguments.pidfd = ptr::from_mut(&mut pidfd).addr() as u64;
        arguments.parent_tid = self.born.words()[0].as_ptr().addr() as u64;
        arguments.child_tid = self.thread.addr() as u64;
        // SAFETY: without CLONE_VM this is `fork`: the copy has its own memory and goes on with a
        // copy of this stack. No other thread holds a lock. The kernel writes the pidfd to this
        // stack, the number of the copy to the segment (the first half of the word), which lives as
        // long as `self`, and in the copy to the place that the C library has for it.
        let pid = unsafe {
            syscall!(libc::SYS_clone3, &raw mut arguments, size_of::<libc::clone_args>())
        };
        match pid {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                // SAFETY: the list of this thread, which the copy has at the same address.
                unsafe { syscall!(libc::SYS_set_robust_list, self.robust.0, self.robust.1) };
                Ok(Copied::Copy)
            }
            // SAFETY: the kernel has just created it for us, and nobody else knows it.
            _ => Ok(Copied::Original(unsafe { OwnedFd::from_raw_fd(pidfd) })),
        }
    }
}

/// Returns an error if the call that makes copies is missing, as under valgrind, or forbidden, as
/// in containers of older releases of Docker.
fn has_clone3() -> Result<(), String> {
    // SAFETY: the kernel refuses a structure of no bytes before it reads any.
    unsafe { syscall!(libc::SYS_clone3, ptr::null::<libc::clone_args>(), 0) };
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EPERM) => Err(format!("the system call `clone3`: {error}")),
        _ => Ok(()),
    }
}

impl Born {
    /// Creates the shared memory.
    ///
    /// # Errors
    /// If memory or descriptors run out.
    pub fn new() -> io::Result<Self> {
        Segment::create("brigade-born", 1).map(Self)
    }

    /// Returns the descriptor for [`Copier::new`].
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Forgets the last copy, which the parent knows.
    pub fn clear(&self) {
        self.0.words()[0].store(0, Ordering::SeqCst);
    }

    /// Takes over a copy from its pidfd.
    ///
    /// # Errors
    /// If there was none since [`clear`](Self::clear).
    pub fn take(&self, pidfd: OwnedFd) -> io::Result<Process> {
        let pid = self.pid().ok_or(rustix::io::Errno::SRCH)?;
        self.clear();
        Ok(adopt(pid, pidfd))
    }

    /// Kills and reaps a copy that nobody has taken over, because its original was killed before it
    /// has answered, or because there was no descriptor for the answer.
    pub fn end_unnamed(&self) {
        let Some(pid) = self.pid() else { return };
        // It is a child of this process and is not reaped, so the number is its own. A pidfd would
        // need a descriptor.
        let _ = kill_process(pid, Signal::KILL);
        let _ = retry_on_intr(|| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED));
        self.clear();
    }

    fn pid(&self) -> Option<Pid> {
        let word = self.0.words()[0].load(Ordering::SeqCst).to_ne_bytes();
        let [a, b, c, d, ..] = word;
        Pid::from_raw(c_int::from_ne_bytes([a, b, c, d]))
    }
}

/// Makes the copy the leader of its group, which it does itself too: whoever comes first.
fn adopt(pid: Pid, pidfd: OwnedFd) -> Process {
    // Fails if the copy has ended, or has executed another program.
    let _ = rustix::process::setpgid(Some(pid), Some(pid));
    Process::new(pid, pidfd)
}

/// Makes this process the leader of a group of its own.
pub fn lead_group() {
    // Fails only for the leader of a session, which a copy is not.
    let _ = rustix::process::setpgid(None, None);
}

/// Makes these the standard output and error of this process.
///
/// # Errors
/// If a descriptor is not open.
pub fn replace_output(stdout: impl AsFd, stderr: impl AsFd) -> io::Result<()> {
    rustix::stdio::dup2_stdout(stdout)?;
    Ok(rustix::stdio::dup2_stderr(stderr)?)
}

/// Opens a folder for [`change_folder`], whatever may be read in it.
///
/// # Errors
/// If there is no such folder; the error is that of a program which is launched there.
pub fn open_folder(path: &Path) -> Result<OwnedFd, LaunchError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
        .map_err(|error| LaunchError::new(LaunchStage::Folder, error.into()))
}

/// Changes to a folder.
///
/// # Errors
/// If this process may not do so.
pub fn change_folder(folder: impl AsFd) -> io::Result<()> {
    Ok(rustix::process::fchdir(folder)?)
}

/// Writes what this process has printed and not written yet, which each copy would write otherwise.
pub fn flush_output() {
    let _ = io::stdout().flush();
    // SAFETY: a null pointer stands for all streams, which the library locks itself.
    unsafe { libc::fflush(ptr::null_mut()) };
}

/// Ends this process without running its exit handlers, which are for its copies.
pub fn end_at_once(code: i32) -> ! {
    // SAFETY: it ends the process and has no conditions.
    unsafe { libc::_exit(code) }
}

/// Returns an error that names the threads of this process, if it has several.
///
/// # Errors
/// Also if they cannot be counted.
pub fn single_thread() -> Result<(), String> {
    let Err(error) = require_one_thread() else { return Ok(()) };
    let names = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let names = names.filter_map(|it| std::fs::read_to_string(it.path().join("comm")).ok());
    let names: Vec<String> = names.map(|name| name.trim_end().to_owned()).collect();
    match names.len() {
        0 | 1 => Err(error.to_string()),
        count => Err(format!("it has {count} threads: {}", names.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{PidfdFlags, pidfd_open};

    use super::*;
    use crate::fork::tests::in_a_copy;
    use crate::process::Exit;

    /// Takes over the copy whose number is in the shared memory.
    fn copy_of(born: &Born) -> Process {
        born.take(pidfd_open(born.pid().expect("a number"), PidfdFlags::empty()).unwrap()).unwrap()
    }

    /// Runs `server` in a child of this process, which has a single thread.
    fn served(born: &Born, server: impl FnOnce(&Copier) -> bool) -> bool {
        let descriptor = born.descriptor().try_clone_to_owned().unwrap();
        in_a_copy(|| Copier::new(descriptor).is_ok_and(|copier| server(&copier)))
    }

    #[test]
    fn a_copy_is_a_child_of_the_parent_and_knows_its_number() {
        let born = Born::new().unwrap();
        let ours = getpid();
        let is_copied = served(&born, |copier| match copier.copy() {
            Ok(Copied::Copy) => {
                let parent = rustix::process::getppid() == Some(ours);
                // SAFETY: reads the number that the C library has for this thread, by which it
                // signals itself.
                let signalled = unsafe { libc::pthread_kill(libc::pthread_self(), 0) == 0 };
                // SAFETY: ends the process.
                unsafe { libc::_exit(if parent && signalled { 7 } else { 1 }) }
            }
            Ok(Copied::Original(_)) => true,
            Err(_) => false,
        });
        assert!(is_copied);
        assert_eq!(copy_of(&born).reap().unwrap(), Exit::Code(7));
    }

    #[test]
    fn an_abort_ends_the_copy_and_not_the_original() {
        let born = Born::new().unwrap();
        assert!(served(&born, |copier| match copier.copy() {
            // SAFETY: ends the process.
            Ok(Copied::Copy) => unsafe { libc::abort() },
            Ok(Copied::Original(_)) => true,
            Err(_) => false,
        }));
        assert_eq!(copy_of(&born).reap().unwrap(), Exit::Signal(libc::SIGABRT));
    }

    #[test]
    fn a_copy_that_nobody_takes_over_is_ended() {
        let born = Born::new().unwrap();
        assert!(served(&born, |copier| match copier.copy() {
            Ok(Copied::Copy) => loop {
                // SAFETY: waits for a signal.
                unsafe { libc::pause() };
            },
            Ok(Copied::Original(_)) => true,
            Err(_) => false,
        }));
        let pid = born.pid().unwrap();
        born.end_unnamed();
        assert_eq!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH));
    }

    #[test]
    fn a_process_with_threads_is_not_copied_and_they_are_named() {
        let born = Born::new().unwrap();
        let descriptor = born.descriptor().try_clone_to_owned().unwrap();
        let reason = std::thread::scope(|scope| {
            let (done, until_done) = std::sync::mpsc::channel::<()>();
            let (named, until_named) = std::sync::mpsc::channel::<()>();
            let thread = std::thread::Builder::new().name("rayon-0".into());
            let wait = move || (named.send(()), until_done.recv());
            thread.spawn_scoped(scope, wait).unwrap();
            until_named.recv().unwrap();
            let reason = Copier::new(descriptor).unwrap_err();
            drop(done);
            reason
        });
        assert!(reason.contains("threads") && reason.contains("rayon-0"), "{reason}");
    }
}
