//! Measures the memory that this process uses and the address space that it has left, and allocates
//! large memory for this crate.

use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, open};
use rustix::mm::{Advice, madvise};
use rustix::process::{Resource, getrlimit};

use crate::arena::mapping::page_size;
use crate::process::folder_of;

/// Returns the resident bytes of this process, from `/proc/self/statm`.
///
/// # Errors
/// If the file cannot be read or has another format than the kernel documents (proc(5)).
pub fn resident() -> io::Result<u64> {
    ResidentSize::open()?.bytes()
}

/// Returns the resident bytes of another process, shared memory included.
///
/// # Errors
/// As [`resident`].
pub fn resident_of(pid: u32) -> io::Result<u64> {
    let text = std::fs::read_to_string(folder_of(pid).join("statm"))?;
    bytes_of_field(&text, 1).ok_or_else(|| io::Error::other("malformed /proc/PID/statm"))
}

/// Returns the bytes of private memory of another process, which `RLIMIT_DATA` limits.
///
/// # Errors
/// If the file cannot be read or has another format than the kernel documents (proc(5)).
pub fn private_of(pid: u32) -> io::Result<u64> {
    Ok(status_of(pid, "VmData:")? * 1024)
}

/// Returns the number of threads of another process.
///
/// # Errors
/// As [`private_of`].
pub fn threads_of(pid: u32) -> io::Result<u64> {
    status_of(pid, "Threads:")
}

fn status_of(pid: u32, name: &str) -> io::Result<u64> {
    let text = std::fs::read_to_string(folder_of(pid).join("status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    number.ok_or_else(|| io::Error::other(format!("no `{name}` in /proc/PID/status")))
}

/// The resident size of this process, measured through a descriptor that stays usable when the
/// process can no longer open files.
#[derive(Debug)]
pub struct ResidentSize(OwnedFd);

impl ResidentSize {
    /// Opens `/proc/self/statm`.
    ///
    /// # Errors
    /// The system's error, if there is no `/proc`.
    pub fn open() -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(Self(open("/proc/self/statm", flags, Mode::empty())?))
    }

    /// Returns the resident bytes.
    ///
    /// # Errors
    /// If the file cannot be read, because other code has closed the descriptor or has forbidden
    /// `pread64`, or has another format than the kernel documents (proc(5)).
    pub fn bytes(&self) -> io::Result<u64> {
        let mut text = [0; 128];
        let length = rustix::io::pread(&self.0, &mut text, 0)?;
        let text = std::str::from_utf8(&text[..length]).unwrap_or_default();
        bytes_of_field(text, 1).ok_or_else(|| io::Error::other("malformed /proc/self/statm"))
    }
}

/// Returns the largest resident memory that this process has had, in bytes.
pub fn peak() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the structure is ours; zeroed it is valid, and the call fills it.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    // Linux counts in KiB.
    u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024
}

/// Returns the bytes of address space that this process may still take under its limit (`ulimit
/// -v`, `RLIMIT_AS`); `None` if it has no limit. If `/proc` does not show the usage, this is the
/// whole limit.
pub fn address_space_left() -> Option<u64> {
    let limit = getrlimit(Resource::As).current?;
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    Some(limit.saturating_sub(bytes_of_field(&text, 0).unwrap_or(0)))
}

/// Returns an error if fewer than `bytes` bytes of address space are left. It is better not to use
/// up the rest, because a program ends when it is refused a few bytes.
///
/// # Errors
/// `OutOfMemory`.
pub fn require_address_space(bytes: u64) -> io::Result<()> {
    match address_space_left() {
        Some(left) if left < bytes => Err(io::Error::new(
            io::ErrorKind::OutOfMemory,
            "too little address space is left (ulimit -v, RLIMIT_AS)",
        )),
        _ => Ok(()),
    }
}

/// Returns an empty vector with room for `count` elements, in huge pages where the system offers
/// them.
///
/// A large vector has fresh pages, and most of the time of a copy into it goes to the system, which
/// provides one page after the other.
#[inline]
pub(crate) fn vec_with_capacity<T>(count: usize) -> Vec<T> {
    let empty = Vec::with_capacity(count);
    if count * size_of::<T>() < HUGE_PAGE { empty } else { in_huge_pages(empty) }
}

/// Returns an empty vector like [`vec_with_capacity`].
///
/// # Errors
/// `OutOfMemory` if there is no room for as much.
pub(crate) fn try_vec_with_capacity<T>(count: usize) -> io::Result<Vec<T>> {
    let mut empty = Vec::new();
    empty.try_reserve_exact(count).map_err(|_| io::ErrorKind::OutOfMemory)?;
    Ok(in_huge_pages(empty))
}

fn in_huge_pages<T>(mut empty: Vec<T>) -> Vec<T> {
    let spare = empty.spare_capacity_mut();
    let (start, length) = (spare.as_ptr().addr(), size_of_val(spare));
    let huge = whole_huge_pages(start..start + length);
    if !huge.is_empty() {
        let inside = spare.as_mut_ptr().cast::<u8>().wrapping_add(huge.start - start);
        // SAFETY: the memory is ours, and the advice changes no byte of it. It is for the system to
        // follow or not.
        let _ = unsafe { madvise(inside.cast(), huge.len(), Advice::LinuxHugepage) };
    }
    empty
}

/// Size of a huge page, on most processors.
const HUGE_PAGE: usize = 2 << 20;

/// Returns the whole huge pages in a range; an empty range if it is too short to be worth a call.
pub(crate) fn whole_huge_pages(range: Range<usize>) -> Range<usize> {
    let end = range.end - range.end % HUGE_PAGE;
    match range.start.checked_next_multiple_of(HUGE_PAGE) {
        Some(start) if range.len() >= 2 * HUGE_PAGE && start < end => start..end,
        _ => 0..0,
    }
}

fn bytes_of_field(statm: &str, index: usize) -> Option<u64> {
    let pages = statm.split_ascii_whitespace().nth(index)?.parse::<u64>().ok()?;
    Some(pages.saturating_mul(page_size() as u64))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_process_has_private_and_resident_memory() {
        let pid = std::process::id();
        assert!((1 << 16..1 << 46).contains(&private_of(pid).unwrap()));
        assert!((1 << 16..1 << 46).contains(&resident_of(pid).unwrap()));
        assert!(private_of(u32::MAX).is_err() && resident_of(u32::MAX).is_err());
    }

    use super::*;

    #[test]
    fn touched_memory_is_counted() {
        let size = ResidentSize::open().unwrap();
        // Other tests of this process free memory meanwhile, now and then more than that.
        let is_counted = |_| {
            let before = resident().unwrap();
            let touched = std::hint::black_box(vec![1_u8; 32 << 20]);
            let after = [resident().unwrap(), size.bytes().unwrap()];
            drop(touched);
            after.iter().all(|after| *after >= before + (24 << 20))
        };
        assert!((0..100).any(is_counted));
    }

    #[test]
    fn only_whole_huge_pages_are_advised() {
        let huge = HUGE_PAGE;
        assert_eq!(whole_huge_pages(0..4 * huge), 0..4 * huge);
        assert_eq!(whole_huge_pages(1..4 * huge + 5), huge..4 * huge);
        assert_eq!(whole_huge_pages(huge - 1..3 * huge - 1), huge..2 * huge);
        for empty in [0..0, 0..2 * huge - 1, usize::MAX - huge..usize::MAX] {
            assert!(whole_huge_pages(empty).is_empty());
        }
        for length in [0, 1, huge, 5 * huge + 3] {
            let mut bytes: Vec<u8> = vec_with_capacity(length);
            assert!(bytes.is_empty() && bytes.capacity() >= length);
            bytes.resize(length, 7);
            assert_eq!(bytes.iter().map(|byte| usize::from(*byte)).sum::<usize>(), 7 * length);
        }
    }

    #[test]
    fn fields_are_pages() {
        let page = page_size() as u64;
        assert_eq!(bytes_of_field("12 3 1", 0), Some(12 * page));
        assert_eq!(bytes_of_field("12 3 1", 1), Some(3 * page));
        assert_eq!(bytes_of_field("", 0), None);
    }
}
