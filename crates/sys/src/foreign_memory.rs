//! Copies memory of another process, once and without its help.
//!
//! The kernel allows that to the process's ancestors and others of its user, unless the process has
//! forbidden it (by `PR_SET_DUMPABLE`, or because it runs as another user), or the administrator
//! has (`kernel.yama.ptrace_scope` of 2 and more).

use std::io;

use crate::numbers::{Numbers, Unit};

/// Returns `true` if this process may read the memory of another one.
pub fn is_readable(pid: u32) -> bool {
    let mut byte = [0];
    // No process has memory there, which the kernel looks at after the permission.
    let read = read_once(pid, NOWHERE, byte.as_mut_ptr(), byte.len());
    read.is_err_and(|error| error.raw_os_error() == Some(libc::EFAULT))
}

/// Copies numbers at an address of another process, of `length` bytes together, in their current
/// state.
///
/// The number of a process that has ended may be another one's. So look after this whether the
/// process still exists.
///
/// # Errors
/// `OutOfMemory` if this process lacks the memory; `InvalidInput` if the last number would not be
/// whole; otherwise the system's error, with `EFAULT` if the process has not all of that memory.
pub fn copy_from(pid: u32, address: u64, length: usize, unit: Unit) -> io::Result<Numbers> {
    let mut copy = Numbers::try_with_room(unit, length)?;
    let mut done = 0;
    while done < length {
        let room = &mut copy.spare()[done..length];
        let to = room.as_mut_ptr().cast();
        let read = read_once(pid, address.saturating_add(done as u64), to, room.len())?;
        if read == 0 || read > room.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        done += read;
    }
    // SAFETY: it has room for `length` bytes, and the kernel has written all of them.
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
        let memory: Vec<u8> = (0..251).cycle().take(3 << 20).collect();
        let pid = std::process::id();
        assert!(is_readable(pid));
        let address = memory[7..].as_ptr().addr() as u64;
        for unit in [1, 2, 4, 8, 16] {
            let unit = Unit::new(unit).unwrap();
            // Numbers at any address.
            for length in [0, 16, 2 << 20] {
                let copy = copy_from(pid, address, length, unit).unwrap();
                assert_eq!((copy.as_bytes(), copy.unit()), (&memory[7..7 + length], unit));
            }
        }
        let error = copy_from(pid, address, 7, Unit::new(4).unwrap()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn memory_that_a_process_does_not_have_is_an_error() {
        let error = copy_from(std::process::id(), NOWHERE, 1 << 20, Unit::BYTE).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
        let error = copy_from(std::process::id(), NOWHERE, usize::MAX / 4, Unit::BYTE).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    }

    #[test]
    fn a_process_that_has_ended_is_not_readable() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(!is_readable(child.id()));
        assert!(copy_from(child.id(), NOWHERE, 1, Unit::BYTE).is_err());
    }
}
