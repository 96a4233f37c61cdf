//! A sparse sealed memfd and its mapping.

use std::ffi::c_void;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mprotect, munmap};

use super::SMALLEST;
use crate::copy::{copy, copy_unstable};
use crate::file_limit;
use crate::memory::whole_huge_pages;

/// The whole of an arena in this process's memory.
#[derive(Debug)]
pub(super) struct ArenaMapping {
    address: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to the value, and the code that reads or writes through it is
// responsible for races.
unsafe impl Send for ArenaMapping {}
// SAFETY: see above.
unsafe impl Sync for ArenaMapping {}

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Creates an arena of at least `bytes` bytes and maps it writable. If the system refuses that
/// size, it is halved until the system grants it, and then divided by four, so that the arena does
/// not take the last address space; but never below [`SMALLEST`].
pub(super) fn create(name: &str, bytes: usize) -> io::Result<(OwnedFd, ArenaMapping)> {
    let mut length = whole_pages(bytes)
        .filter(|length| (1..=isize::MAX.unsigned_abs()).contains(length))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "arena size out of range"))?;
    // The system would not refuse a file beyond this limit: the process would get a signal.
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
        ArenaMapping::new(&descriptor, length, ProtFlags::READ | ProtFlags::WRITE)
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

/// Maps an arena that another process has created.
pub(super) fn open(
    descriptor: impl AsFd,
    bytes: usize,
    access: ProtFlags,
) -> io::Result<ArenaMapping> {
    // Seals first: once they are seen, the size cannot change any more.
    if bytes == 0
        || !fcntl_get_seals(&descriptor)?.contains(SEALS)
        || usize::try_from(fstat(&descriptor)?.st_size) != Ok(bytes)
    {
        return Err(invalid("not a sealed arena of the expected size"));
    }
    ArenaMapping::new(descriptor, bytes, access)
}

pub(super) fn invalid(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// Returns `bytes` rounded up to whole pages, at least one page; `None` on overflow.
pub(super) fn whole_pages(bytes: usize) -> Option<usize> {
    bytes.max(1).checked_next_multiple_of(page_size())
}

pub(crate) fn page_size() -> usize {
    // SAFETY: it reads a constant of the running system.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).ok().filter(|size| size.is_power_of_two()).unwrap_or(MAX_PAGE)
}

/// Size of the largest pages on any system.
const MAX_PAGE: usize = 64 << 10;

#[expect(clippy::expect_used, reason = "half of a length has a next multiple")]
fn halve(length: usize) -> usize {
    whole_pages(length / 2).expect("half of a length is one")
}

impl ArenaMapping {
    fn new(descriptor: impl AsFd, length: usize, access: ProtFlags) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let address =
            unsafe { mmap(ptr::null_mut(), length, access, MapFlags::SHARED, descriptor, 0) }?;
        let address = NonNull::new(address.cast())
            .ok_or_else(|| io::Error::other("the kernel mapped memory at address zero"))?;
        let mapping = Self { address, length };
        // A core dump should not contain the arguments of a thousand tasks. If it does, it is
        // merely large.
        let _ = mapping.advise(0, length, Advice::LinuxDontDump);
        Ok(mapping)
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Gives the range its memory at once. That is faster than page by page, and a lack of memory
    /// is an error here instead of a signal later.
    pub(super) fn populate(&self, start: usize, length: usize) -> io::Result<()> {
        self.advise_huge_pages(start, length);
        match self.advise(start, length, Advice::LinuxPopulateWrite) {
            // Systems before Linux 5.14 do not support it, not even for zero bytes. On others the
            // mapping is not writable.
            Err(Errno::INVAL) if self.advise(start, 0, Advice::LinuxPopulateWrite).is_err() => {
                Ok(())
            }
            result => Ok(result?),
        }
    }

    /// Asks for huge pages if the system gives them to shared memory on request only.
    fn advise_huge_pages(&self, start: usize, length: usize) {
        static ON_REQUEST: OnceLock<bool> = OnceLock::new();
        let range = whole_huge_pages(start..start + length);
        let is_on_request = || {
            let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
            setting.is_ok_and(|setting| setting.contains("[advise]"))
        };
        if !range.is_empty() && *ON_REQUEST.get_or_init(is_on_request) {
            // Without huge pages everything works the same.
            let _ = self.advise(range.start, range.len(), Advice::LinuxHugepage);
        }
    }

    /// Releases the memory of whole pages to the system; they are zero then.
    pub(super) fn discard(&self, start: usize, length: usize) {
        // If it fails, the memory stays, and nothing else is different.
        let _ = self.advise(start, length, Advice::LinuxRemove);
    }

    fn advise(&self, start: usize, length: usize, advice: Advice) -> Result<(), Errno> {
        // SAFETY: the range lies in the mapping. None of the advices used here moves or unmaps it;
        // `LinuxRemove` changes bytes as any writer of a shared mapping may, in blocks whose
        // content nobody may rely on.
        unsafe { madvise(self.at(start, length).cast::<c_void>(), length, advice) }
    }

    /// Makes whole pages read-only for this process. Its references to these bytes stay valid; a
    /// write through anything else gets SIGSEGV.
    pub(super) fn protect(&self, start: usize, length: usize) -> io::Result<()> {
        self.set_access(start, length, MprotectFlags::READ)
    }

    /// Makes whole pages writable again, if the descriptor of the mapping was writable.
    pub(super) fn unprotect(&self, start: usize, length: usize) -> io::Result<()> {
        self.set_access(start, length, MprotectFlags::READ | MprotectFlags::WRITE)
    }

    fn set_access(&self, start: usize, length: usize, access: MprotectFlags) -> io::Result<()> {
        // SAFETY: the range lies in the mapping, and all bytes stay readable. Callers protect only
        // blocks that are no longer written.
        Ok(unsafe { mprotect(self.at(start, length).cast(), length, access) }?)
    }

    /// Returns the address of a range.
    ///
    /// # Panics
    /// If the range does not lie in the arena.
    fn at(&self, start: usize, length: usize) -> *mut u8 {
        assert!(self.contains(start, length), "the range exceeds the arena");
        // SAFETY: it lies in the mapping, as was just checked.
        unsafe { self.address.as_ptr().add(start) }
    }

    pub(super) fn contains(&self, start: usize, length: usize) -> bool {
        start.checked_add(length).is_some_and(|end| end <= self.length)
    }

    /// Returns the word at the beginning of a block.
    ///
    /// # Panics
    /// If the word is not aligned or not in the arena.
    pub(super) fn word(&self, start: usize) -> &AtomicU64 {
        #[expect(clippy::cast_ptr_alignment, reason = "the next line checks it")]
        let word = self.at(start, size_of::<u64>()).cast::<AtomicU64>();
        assert!(word.is_aligned(), "a block starts inside a word");
        // SAFETY: the word exists as long as the mapping, is aligned, and any value is valid. The
        // processes that share it access it as an atomic; one that runs wild changes its value and
        // nothing else.
        unsafe { &*word }
    }

    /// Copies bytes into the arena.
    ///
    /// # Safety
    /// The mapping is writable, and no reference to these bytes exists in this process.
    pub(super) unsafe fn write(&self, start: usize, bytes: &[u8]) {
        let to = self.at(start, bytes.len());
        // SAFETY: the destination lies in the mapping, which the caller says is writable and
        // unreferenced; `bytes` lie elsewhere, because the caller says that there is no reference
        // to this part of the mapping.
        unsafe { copy(bytes.as_ptr(), to, bytes.len()) };
    }

    /// Copies bytes out of an arena that another process may write at the same time.
    pub(super) fn read(&self, start: usize, into: &mut [MaybeUninit<u8>]) {
        let from = self.at(start, into.len());
        // SAFETY: the source lies in the mapping and `into` is private memory of the same length.
        // Another process may change the bytes meanwhile: then each byte of the copy is an old or a
        // new one. No decision depends on them here and any byte is valid; callers look only at the
        // copy, which nobody else can reach.
        unsafe { copy_unstable(from, into.as_mut_ptr().cast(), into.len()) }
    }

    /// Returns bytes of an arena.
    ///
    /// # Safety
    /// Nobody writes these bytes while the reference lives.
    pub(super) unsafe fn bytes(&self, start: usize, length: usize) -> &[u8] {
        // SAFETY: the range lies in the mapping, which lives as long as `self`; the caller
        // guarantees that it does not change.
        unsafe { std::slice::from_raw_parts(self.at(start, length), length) }
    }

    /// Returns bytes of an arena, to be written.
    ///
    /// # Safety
    /// The mapping is writable there, and nobody else reads or writes these bytes while the
    /// reference lives.
    #[expect(clippy::mut_from_ref, reason = "a mapping has many blocks, each with its own owner")]
    pub(super) unsafe fn bytes_mut(&self, start: usize, length: usize) -> &mut [u8] {
        // SAFETY: the range lies in the mapping, which lives as long as `self`; the caller
        // guarantees that it is writable and used by nobody else.
        unsafe { std::slice::from_raw_parts_mut(self.at(start, length), length) }
    }
}

impl Drop for ArenaMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length and nobody holds a reference, because
        // `self` is being dropped. It fails only for an address that is not mapped.
        let _ = unsafe { munmap(self.address.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ArenaMapping {
        /// Replaces one of our pages with a page to which the system cannot give memory.
        pub(in crate::arena) fn spoil_page(&self, start: usize) -> io::Result<()> {
            let empty = memfd_create("empty", MemfdFlags::CLOEXEC)?;
            let (page, flags) = (self.at(start, page_size()), MapFlags::SHARED | MapFlags::FIXED);
            let access = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: the page is part of our mapping, and the tests that call this have no
            // reference to its bytes.
            unsafe { mmap(page.cast(), page_size(), access, flags, &empty, 0) }?;
            Ok(())
        }
    }
}
