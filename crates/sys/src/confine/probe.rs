//! Gives up rights in a process that ends at once, at the cost of `vfork`: it has the memory of
//! this one, which is suspended meanwhile.

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use super::Restrictions;
use crate::signals::Blocked;
use crate::syscall::checked;

/// Data that both processes have.
struct Shared<'a> {
    restrictions: &'a Restrictions,
    result: Result<(), (&'static str, io::Error)>,
}

/// The longest path is on it, and a few numbers.
const STACK_BYTES: usize = 64 * 1024;

impl Restrictions {
    /// Returns what [`apply`](Self::apply) returns in a process that gives up the rights and ends
    /// at once.
    ///
    /// # Errors
    /// If there is no process, descriptor or memory for it, which says nothing of the rights.
    pub fn probe(&self) -> io::Result<Result<(), (&'static str, io::Error)>> {
        let mut stack: Box<[MaybeUninit<u128>]> =
            vec![MaybeUninit::uninit(); STACK_BYTES / size_of::<u128>()].into();
        let result = Err(("end", io::ErrorKind::Interrupted.into()));
        let mut shared = Shared { restrictions: self, result };
        let _blocked = Blocked::all();
        let top = stack.as_mut_ptr_range().end;
        // Without a signal at its end, no other code takes it for a child of its own.
        let flags = libc::CLONE_VM | libc::CLONE_VFORK;
        // SAFETY: the stack is ours, and this thread is suspended until the child has ended, which
        // has the only reference to `shared` meanwhile. It only makes system calls. The place for a
        // pidfd is not used without its flag.
        let pid = unsafe {
            let no_pidfd = ptr::null_mut::<i32>();
            libc::clone(child, top.cast(), flags, (&raw mut shared).cast(), no_pidfd)
        };
        checked(pid)?;
        // SAFETY: the child is ours; a null pointer takes no status. No signal interrupts it.
        unsafe { libc::waitpid(pid, ptr::null_mut(), libc::__WALL) };
        let shortage = [libc::EAGAIN, libc::EMFILE, libc::ENFILE, libc::ENOMEM].map(Some);
        match shared.result {
            Err((_, error)) if shortage.contains(&error.raw_os_error()) => Err(error),
            result => Ok(result),
        }
    }
}

extern "C" fn child(shared: *mut c_void) -> c_int {
    // SAFETY: the parent passes a `Shared`, to which nobody else has access until this process
    // ends.
    let shared = unsafe { &mut *shared.cast::<Shared<'_>>() };
    shared.result = shared.restrictions.apply();
    // SAFETY: ends the child without running any code of its parent's.
    unsafe { libc::_exit(0) }
}
