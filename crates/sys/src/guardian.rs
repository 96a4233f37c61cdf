//! A second process that briefly outlives the first and kills everything that the first has
//! started.
//!
//! A parent that is killed by SIGKILL can do nothing any more. `PR_SET_PDEATHSIG` kills the leaders
//! of its groups, but not the processes that those have started. The guardian does: it waits on a
//! pidfd of its parent, and then kills each group that is listed in memory that both share.
//!
//! - Processes that have left their group are identified by a mark in their environment, with which
//!   jobs are started.
//! - An entry is written by the child itself, before it executes anything
//!   ([`launch`](crate::launch)), and cleared by the parent after the group was killed and before
//!   its leader is reaped. So no group is ever missing.
//! - A group whose leader was ended by the parent's death keeps its number as long as it has a
//!   member. An empty group has no process to kill; its number could be given to another group only
//!   if all numbers were used once within the moment between the parent's death and the guardian's
//!   last kill.
//! - The guardian is in a session of its own, blocks every signal and holds no descriptor but the
//!   pidfd, so neither a terminal nor a kill of the parent's group ends it, and it delays no
//!   end-of-file. It runs in a copy of its parent's memory and only makes system calls.

mod sweep;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process, pidfd_open,
    pidfd_send_signal, waitid,
};

use crate::fork::Origin;
use crate::signals::Blocked;

/// The guardian of this process's groups. Dropping it ends the guardian, except in a copy of this
/// process that `fork` has made.
#[derive(Debug)]
pub struct Guardian {
    slots: Slots,
    mark: String,
    pid: Pid,
    pidfd: OwnedFd,
    origin: Origin,
}

/// An entry that tells the guardian about one group at a time.
#[derive(Debug)]
pub struct GroupSlot(AtomicI32);

impl Guardian {
    /// Starts the guardian, for at most `capacity` groups at once. `mark` is an entry `NAME=value`
    /// of the environment, by which it finds processes that have left their group; it should be
    /// unique to this run.
    ///
    /// # Errors
    /// If no memory or no process is left, or the mark is longer than 63 bytes.
    pub fn start(capacity: usize, mark: &str) -> io::Result<Self> {
        let slots = Slots::new(capacity)?;
        let (pid, pidfd) = fork(&slots, mark)?;
        Ok(Self { slots, mark: mark.to_owned(), pid, pidfd, origin: Origin::here() })
    }

    /// Starts another guardian for the same groups, after this one has ended because somebody
    /// killed it.
    ///
    /// # Errors
    /// Like [`start`](Self::start).
    pub fn restart(&mut self) -> io::Result<()> {
        self.end();
        (self.pid, self.pidfd) = fork(&self.slots, &self.mark)?;
        Ok(())
    }

    /// Returns the descriptor that becomes readable when the guardian has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    fn end(&self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        let _ = rustix::io::retry_on_intr(|| {
            waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED)
        });
    }

    /// Returns the entry at `index`.
    pub fn slot(&self, index: usize) -> Option<&GroupSlot> {
        self.slots.as_slice().get(index)
    }

    /// Forgets the group in the entry at `index`, which has ended.
    pub fn clear(&self, index: usize) {
        if let Some(slot) = self.slot(index) {
            slot.clear();
        }
    }

    /// Kills at once the processes that the guardian would find by its mark after the end of this
    /// process.
    pub fn end_marked(&self) {
        let mark: Vec<u8> = self.mark.bytes().chain([0]).collect();
        sweep::kill_marked(&mark);
    }

    /// Returns the guardian's process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        if self.origin.is_here() {
            self.end();
        }
    }
}

impl GroupSlot {
    /// Lists the group that this process leads. Safe between `vfork` and `execve`.
    pub(crate) fn announce(&self, group: i32) {
        self.0.store(group, Ordering::SeqCst);
    }

    /// Removes the group; call it before the leader is reaped.
    pub(crate) fn clear(&self) {
        self.0.store(0, Ordering::SeqCst);
    }
}

fn fork(slots: &Slots, mark: &str) -> io::Result<(Pid, OwnedFd)> {
    let mut entry = [0; sweep::MAX_MARK];
    let room = entry.get_mut(..mark.len()).filter(|_| mark.len() < sweep::MAX_MARK);
    room.ok_or(rustix::io::Errno::NAMETOOLONG)?.copy_from_slice(mark.as_bytes());
    let entry = &entry[..=mark.len()];
    let parent = pidfd_open(getpid(), PidfdFlags::empty())?;
    // A signal of the terminal must not stop the guardian on its way out of our group.
    let _blocked = Blocked::all();
    // SAFETY: the child of a process with several threads may only do what is safe in a signal
    // handler; `guard` only makes system calls and never returns.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => guard(parent.as_raw_fd(), slots.as_slice(), entry),
        pid => {
            let pid = Pid::from_raw(pid).ok_or(rustix::io::Errno::SRCH)?;
            match pidfd_open(pid, PidfdFlags::empty()) {
                Ok(pidfd) => Ok((pid, pidfd)),
                Err(error) => {
                    // It would wait for our end. Nobody else has reaped it, so the number is its
                    // own.
                    let _ = kill_process(pid, Signal::KILL);
                    let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
                    Err(error.into())
                }
            }
        }
    }
}

/// Runs the guardian until its end. Its parent has blocked all signals.
fn guard(parent: libc::c_int, slots: &[GroupSlot], mark: &[u8]) -> ! {
    // SAFETY: system calls with numbers and with structures of our own; nothing is allocated and no
    // lock is taken.
    unsafe {
        libc::setsid();
        // A different name than the parent's: killing all processes of that name should not kill
        // their guardian.
        libc::prctl(libc::PR_SET_NAME, c"lifeline".as_ptr());
        let descriptor = parent.unsigned_abs();
        if descriptor > 0 {
            syscall!(libc::SYS_close_range, 0_u32, descriptor - 1, 0_u32);
        }
        syscall!(libc::SYS_close_range, descriptor + 1, u32::MAX, 0_u32);
        let mut death = libc::pollfd { fd: parent, events: libc::POLLIN, revents: 0 };
        while libc::poll(&raw mut death, 1, -1) < 1 {}
        for slot in slots {
            let group = slot.0.load(Ordering::SeqCst);
            if group > 1 {
                libc::kill(-group, libc::SIGKILL);
            }
        }
        sweep::kill_marked(mark);
        libc::_exit(0)
    }
}

/// Shared memory that a fork does not copy.
#[derive(Debug)]
struct Slots {
    start: NonNull<GroupSlot>,
    count: usize,
}

// SAFETY: the memory is ours until the drop, and holds atomic numbers only.
unsafe impl Send for Slots {}
// SAFETY: see above.
unsafe impl Sync for Slots {}

impl Slots {
    fn new(count: usize) -> io::Result<Self> {
        let count = count.max(1);
        // Checked, because a product that wraps around would make `as_slice` longer than the memory
        // behind it.
        let bytes = count
            .checked_mul(size_of::<GroupSlot>())
            .filter(|bytes| isize::try_from(*bytes).is_ok())
            .ok_or(rustix::io::Errno::NOMEM)?;
        // SAFETY: the kernel picks the address, so no other memory is touched.
        let start = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
            )
        }?;
        let start = NonNull::new(start.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        Ok(Self { start, count })
    }

    fn as_slice(&self) -> &[GroupSlot] {
        // SAFETY: the memory is mapped, aligned to a page and zeroed, which is a valid entry; it
        // lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; no reference outlives `self`.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.count * size_of::<GroupSlot>()) };
    }
}
