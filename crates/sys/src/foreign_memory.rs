//! Copies memory of another process, once and without its help.
//!
//! The kernel allows that to the process's ancestors and others of its user, unless the process has
//! forbidden it (by `PR_SET_DUMPABLE`, or because it runs as another user), or the administrator
//! has (`kernel.yama.ptrace_scope` of 2 and more).

use std::io;
use std::mem::MaybeUninit;

use crate::numbers::{Numbers, Unit};

/// Returns `true` if this process may read the memory of another one.
pub fn is_readable(pid: u32) -> bool {
    let mut byte = [0];
    // No process has memory there, which the kernel looks at after the permission.
    let read = read_once(pid, NOWHERE, byte.as_mut_ptr(), byte.len());
    read.is_err_and(|error| error.raw_os_error() == Some(libc::EFAULT))
}

/// A part of the memory that [`copy_from`] copies.
#[derive(Debug)]
pub struct Part<'a> {
    pid: u32,
    address: u64,
    room: &'a mut [MaybeUninit<u8>],
    copied: Option<io::Result<()>>,
}

impl Part<'_> {
    /// Copies the part on this thread, unless that was done.
    pub fn copy(&mut self) {
        if self.copied.is_none() {
            self.copied = Some(self.try_copy());
        }
    }

    fn try_copy(&mut self) -> io::Result<()> {
        let mut done = 0;
        while done < self.room.len() {
            let room = &mut self.room[done..];
            let to = room.as_mut_ptr().cast();
            let read =
                read_once(self.pid, self.address.saturating_add(done as u64), to, room.len())?;
            if read == 0 || read > room.len() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            done += read;
        }
        Ok(())
    }
}

/// Copies numbers at an address of another process, of `length` bytes together, in their current
/// state.
///
/// `spread` gets as many `parts` of about the same size, or fewer, and may copy them on several
/// threads. What it leaves out is copied afterwards.
///
/// The number of a process that has ended may be another one's. So look after this whether the
/// process still exists.
///
/// # Errors
/// `OutOfMemory` if this process lacks the memory; `InvalidInput` if the last number would not be
/// whole; otherwise the system's error, with `EFAULT` if the process has not all of that memory.
pub fn copy_from(
    pid: u32,
    (address, length): (u64, usize),
    unit: Unit,
    parts: usize,
    spread: impl FnOnce(&mut [Part<'_>]),
) -> io::Result<Numbers> {
    let mut copy = Numbers::try_with_room(unit, length)?;
    let size = length.div_ceil(parts.max(1)).max(1);
    let rooms = copy.spare()[..length].chunks_mut(size).zip((0_u64..).step_by(size));
    let part = |(room, at)| Part { pid, address: address.saturating_add(at), room, copied: None };
    let mut parts: Vec<_> = rooms.map(part).collect();
    spread(&mut parts);
    for mut part in parts {
        part.copy();
        part.copied.unwrap_or(Ok(()))?;
    }
    // SAFETY: it has room for `length` bytes, and the kernel has written all parts of them.
    unsafe { copy.set_byte_len(length) };
    Ok(copy)
}

/// Copies bytes to an address of another process.
///
/// # Errors
/// The system's error, with `EFAULT` if the process has not all of that memory. Then some bytes may
/// have been copied.
///
/// # Safety
/// The process is not this one, and cannot be reaped meanwhile: its number belongs to it.
pub(crate) unsafe fn copy_to(pid: i32, address: u64, bytes: &[u8]) -> io::Result<()> {
    let address = usize::try_from(address).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut done = 0;
    while done < bytes.len() {
        let left = &bytes[done..];
        let here = libc::iovec { iov_base: left.as_ptr().cast_mut().cast(), iov_len: left.len() };
        let to = std::ptr::without_provenance_mut(address.saturating_add(done));
        let there = libc::iovec { iov_base: to, iov_len: left.len() };
        // SAFETY: the kernel only reads the slice, and writes to another process, which the caller
        // says is the right one.
        let written =
            unsafe { libc::process_vm_writev(pid, &raw const here, 1, &raw const there, 1, 0) };
        match usize::try_from(written).map_err(|_| io::Error::last_os_error())? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => done += written,
        }
    }
    Ok(())
}

/// An address that is never mapped: the first page is reserved.
const NOWHERE: u64 = 8;

/// Reads up to `length` bytes to `to`, which has room for them, and returns their number.
fn read_once(pid: u32, address: u64, to: *mut u8, length: usize) -> io::Result<usize> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    let address = usize::try_from(address).map_err(|_| io::ErrorKind::InvalidInput)?;
    let here = libc::iovec { iov_base: to.cast(), iov_len: length };
    let there =
        libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: length };
    // SAFETY: the kernel writes to `length` bytes at most, which the callers have room for, and
    // only reads the other process.
    let read = unsafe { libc::process_vm_readv(pid, &raw const here, 1, &raw const there, 1, 0) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn memory_of_this_process_can_be_copied() {
        let memory = brigade_testkit_core::payload(0, 3 << 20);
        let pid = std::process::id();
        assert!(is_readable(pid));
        let address = memory[7..].as_ptr().addr() as u64;
        for unit in [1, 2, 4, 8, 16] {
            let unit = Unit::new(unit).unwrap();
            // Numbers at any address.
            for length in [0, 16, 2 << 20] {
                for parts in [0, 1, 2, 3] {
                    let place = (address, length);
                    let copy = copy_from(pid, place, unit, parts, |_| ()).unwrap();
                    assert_eq!((copy.as_bytes(), copy.unit()), (&memory[7..7 + length], unit));
                }
            }
        }
        let error = copy_from(pid, (address, 7), Unit::new(4).unwrap(), 1, |_| ()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn memory_that_a_process_does_not_have_is_an_error() {
        let copy = |length| copy_from(std::process::id(), (NOWHERE, length), Unit::BYTE, 2, |_| ());
        let error = copy(1 << 20).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
        let error = copy(usize::MAX / 4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    }

    #[test]
    fn a_process_that_has_ended_is_not_readable() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(!is_readable(child.id()));
        assert!(copy_from(child.id(), (NOWHERE, 1), Unit::BYTE, 1, |_| ()).is_err());
    }

    #[test]
    fn parts_are_copied_once_on_any_thread() {
        let memory = brigade_testkit_core::payload(0, 1 << 20);
        let place = (memory.as_ptr().addr() as u64, memory.len());
        let copy = copy_from(std::process::id(), place, Unit::BYTE, 2, |parts| {
            let [first, second] = parts else { panic!("two parts") };
            std::thread::scope(|scope| {
                scope.spawn(|| second.copy());
                first.copy();
            });
            assert!(parts.iter().all(|part| part.copied.is_some()));
        });
        assert_eq!(copy.unwrap().as_bytes(), memory);
    }
}
