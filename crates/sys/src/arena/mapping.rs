//! A sparse sealed memfd, and its mapping.

#[cfg(target_arch = "x86_64")]
use std::arch::asm;
use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use super::SMALLEST;
use crate::file_limit;

/// The whole of an arena in this process's memory.
#[derive(Debug)]
pub(super) struct Mapping {
    address: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to the value, and whoever reads or writes through it answers for races.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Makes an arena of at least `bytes` bytes and maps it writable. When the system refuses so much, it is halved until the
/// system grants it, and then a quarter of that, so that the arena does not take the last address space; down to
/// [`SMALLEST`].
pub(super) fn create(name: &str, bytes: usize) -> io::Result<(OwnedFd, Mapping)> {
    let mut length = whole_pages(bytes)
        .filter(|length| (1..=isize::MAX.unsigned_abs()).contains(length))
        .ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "an arena of an impossible size")
        })?;
    // A file beyond this limit would not be refused: the process would get a signal.
    if let Some(limit) = file_limit::current() {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        while length > limit && length / 2 >= SMALLEST {
            length = halve(length);
        }
        file_limit::check(length as u64)?;
    }
    let descriptor = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let map = |length| {
        ftruncate(&descriptor, length as u64)?;
        Mapping::new(&descriptor, length, ProtFlags::READ | ProtFlags::WRITE)
    };
    let wanted = length;
    let mut mapping = loop {
        match map(length) {
            Ok(mapping) => break mapping,
            Err(_) if length / 2 >= SMALLEST => length = halve(length),
            Err(error) => return Err(error),
        }
    };
    if length < wanted {
        drop(mapping);
        mapping = map(halve(halve(length)).max(whole_pages(SMALLEST).unwrap_or(length)))?;
    }
    fcntl_add_seals(&descriptor, SEALS)?;
    Ok((descriptor, mapping))
}

/// Maps an arena that another process made.
pub(super) fn open(descriptor: impl AsFd, bytes: usize, access: ProtFlags) -> io::Result<Mapping> {
    // Seals first: the size cannot change any more once they are seen.
    if bytes == 0
        || !fcntl_get_seals(&descriptor)?.contains(SEALS)
        || usize::try_from(fstat(&descriptor)?.st_size) != Ok(bytes)
    {
        return Err(invalid("not a sealed arena of the expected size"));
    }
    Mapping::new(descriptor, bytes, access)
}

pub(super) fn invalid(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// The length of whole pages that so many bytes take; at least one page, and `None` if there is no such number.
pub(super) fn whole_pages(bytes: usize) -> Option<usize> {
    bytes.max(1).checked_next_multiple_of(page_size())
}

pub(crate) fn page_size() -> usize {
    // SAFETY: it reads a constant of the running system.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).ok().filter(|size| size.is_power_of_two()).unwrap_or(LARGEST_PAGE)
}

/// No system has larger pages.
const LARGEST_PAGE: usize = 64 << 10;

fn halve(length: usize) -> usize {
    whole_pages(length / 2).expect("half of a length is one")
}

impl Mapping {
    fn new(descriptor: impl AsFd, length: usize, access: ProtFlags) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let address =
            unsafe { mmap(ptr::null_mut(), length, access, MapFlags::SHARED, descriptor, 0) }?;
        let address = NonNull::new(address.cast())
            .ok_or_else(|| io::Error::other("mapped at address zero"))?;
        let mapping = Self { address, length };
        // A core dump is not to hold the arguments of a thousand tasks. If it does, that is only large.
        let _ = mapping.advise(0, length, Advice::LinuxDontDump);
        Ok(mapping)
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Gives the range its memory at once, which is faster than page by page, and where there is none it is an error here
    /// and not a signal later.
    pub(super) fn populate(&self, start: usize, length: usize) -> io::Result<()> {
        match self.advise(start, length, Advice::LinuxPopulateWrite) {
            // Systems before Linux 5.14 do not know it, not even for no bytes. On others the mapping cannot be written.
            Err(Errno::INVAL) if self.advise(start, 0, Advice::LinuxPopulateWrite).is_err() => {
                Ok(())
            }
            result => Ok(result?),
        }
    }

    /// Gives the memory of whole pages back to the system; they are zero then.
    pub(super) fn discard(&self, start: usize, length: usize) {
        // If it fails, the memory stays, and nothing else is different.
        let _ = self.advise(start, length, Advice::LinuxRemove);
    }

    fn advise(&self, start: usize, length: usize, advice: Advice) -> Result<(), Errno> {
        // SAFETY: the range lies in the mapping. None of the advices used here moves or unmaps it; `LinuxRemove` changes
        // bytes as any writer of a shared mapping may, in blocks that nobody is promised to find unchanged.
        unsafe { madvise(self.at(start, length).cast::<c_void>(), length, advice) }
    }

    /// Puts a page in the place of one of ours to which the system cannot give memory.
    #[cfg(test)]
    pub(super) fn spoil_page(&self, start: usize) -> io::Result<()> {
        let empty = memfd_create("empty", MemfdFlags::CLOEXEC)?;
        let (place, flags) = (self.at(start, page_size()), MapFlags::SHARED | MapFlags::FIXED);
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the page is part of our mapping, to whose bytes the tests that call this have no reference.
        unsafe { mmap(place.cast(), page_size(), access, flags, &empty, 0) }?;
        Ok(())
    }

    /// Where a range begins.
    ///
    /// # Panics
    /// When the range does not lie in the arena.
    fn at(&self, start: usize, length: usize) -> *mut u8 {
        assert!(self.contains(start, length), "a range beyond its arena");
        // SAFETY: it lies in the mapping, as was just checked.
        unsafe { self.address.as_ptr().add(start) }
    }

    pub(super) fn contains(&self, start: usize, length: usize) -> bool {
        start.checked_add(length).is_some_and(|end| end <= self.length)
    }

    /// The word at the beginning of a block.
    ///
    /// # Panics
    /// When it is not aligned, or not there.
    pub(super) fn word(&self, start: usize) -> &AtomicU64 {
        #[expect(clippy::cast_ptr_alignment, reason = "the next line checks it")]
        let word = self.at(start, size_of::<u64>()).cast::<AtomicU64>();
        assert!(word.is_aligned(), "a block begins within a word");
        // SAFETY: the word is there as long as the mapping, aligned, and any value is one. The processes that share it
        // reach it as an atomic; one that does not, because it runs wild, changes its value and nothing else.
        unsafe { &*word }
    }

    /// Copies bytes into the arena.
    ///
    /// # Safety
    /// The mapping is writable, and no reference to these bytes exists in this process.
    pub(super) unsafe fn write(&self, start: usize, bytes: &[u8]) {
        let place = self.at(start, bytes.len());
        // SAFETY: the place lies in the mapping, which the caller says is writable and unseen; `bytes` lie elsewhere,
        // because the caller says that there is no reference to this part of the mapping.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
    }

    /// Copies bytes out of an arena that another process may write at the same time.
    pub(super) fn read(&self, start: usize, into: &mut [MaybeUninit<u8>]) {
        let place = self.at(start, into.len());
        // SAFETY: the place lies in the mapping and `into` is private memory of the same length. Another process may
        // change the bytes meanwhile: then each byte of the copy is an old or a new one. Nothing is decided by them here
        // and any byte is valid; the copy, which nobody else can reach, is what is looked at.
        unsafe { copy_unstable(place, into.as_mut_ptr().cast(), into.len()) }
    }

    /// The bytes of an arena that only the host writes.
    ///
    /// # Safety
    /// Nobody writes these bytes while the reference lives.
    pub(super) unsafe fn bytes(&self, start: usize, length: usize) -> &[u8] {
        // SAFETY: the range lies in the mapping, which lives as long as `self`; that it does not change says the caller.
        unsafe { std::slice::from_raw_parts(self.at(start, length), length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length and nobody holds a reference: `self` goes.
        // It fails only for an address that is not mapped.
        let _ = unsafe { munmap(self.address.as_ptr().cast(), self.length) };
    }
}

/// Copies bytes that may change at any time. To the compiler `ptr::copy` of such bytes would be a data race: it could read
/// them again instead of the copy. An instruction of the machine reads what is there, once, and the compiler knows nothing of it.
///
/// # Safety
/// `length` bytes can be read at `from` and written at `to`, and do not overlap. Nobody else reaches those at `to`.
#[cfg(target_arch = "x86_64")]
unsafe fn copy_unstable(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the instruction reads and writes the ranges that the caller vouches for, forwards, as the direction flag is
    // clear at the beginning of every block. It changes the three registers and no flag.
    unsafe {
        asm!(
            "rep movsb",
            inout("rcx") length => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags),
        );
    }
}

/// As above, where the instruction is not there: slower than it.
///
/// # Safety
/// As above.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_unstable(from: *const u8, to: *mut u8, length: usize) {
    for index in 0..length {
        // SAFETY: both places lie in the ranges that the caller vouches for. A volatile read is done once, as it is written.
        unsafe { to.add(index).write(from.add(index).read_volatile()) };
    }
}
