//! Bytes that are written once and then can only be read, by any number of processes.
//!
//! The seals take the right to write from everybody, including the creator, and the right to change
//! the size. So a process that has seen the seals may use the bytes without a copy as long as the
//! mapping exists.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, memfd_create};
use rustix::io::{Errno, retry_on_intr, write};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::file_limit;

const SEALS: SealFlags =
    SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::WRITE).union(SealFlags::SEAL);

/// The creator's side: a descriptor to hand out.
#[derive(Debug)]
pub struct SealedBytes {
    descriptor: OwnedFd,
    length: usize,
}

impl SealedBytes {
    /// Creates shared memory with these parts, one after the other. The name appears only in
    /// `/proc`.
    ///
    /// # Errors
    /// If memory or descriptors run out.
    pub fn create(name: &str, parts: &[&[u8]]) -> io::Result<Self> {
        file_limit::check(parts.iter().map(|part| part.len() as u64).sum())?;
        let descriptor = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let mut length = 0;
        for part in parts {
            write_all(&descriptor, part)?;
            length += part.len();
        }
        seal(&descriptor)?;
        Ok(Self { descriptor, length })
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns `true` if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

fn write_all(descriptor: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        bytes = &bytes[retry_on_intr(|| write(descriptor, bytes))?..];
    }
    Ok(())
}

/// Number of times that the kernel is asked for the seals. Each time it waits for a moment itself.
const ATTEMPTS: u32 = 20;

/// Takes the right to write. Nobody has mapped the memory, but the kernel refuses with EBUSY while
/// one of its own threads holds a page, which it may do when memory is being reclaimed.
fn seal(descriptor: &OwnedFd) -> io::Result<()> {
    let mut attempts = 1..=ATTEMPTS;
    loop {
        match fcntl_add_seals(descriptor, SEALS) {
            Err(Errno::BUSY) if attempts.next().is_some() => std::thread::yield_now(),
            result => return Ok(result?),
        }
    }
}

crate::as_fd!(SealedBytes, descriptor);

/// The readers' side: the bytes, mapped in a time that does not depend on their number.
#[derive(Debug)]
pub struct SealedView {
    /// Dangling if there are no bytes: nothing is mapped then.
    address: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to no thread, and nobody writes to it.
unsafe impl Send for SealedView {}
// SAFETY: as above; by reference, too, it can only be read.
unsafe impl Sync for SealedView {}

impl SealedView {
    /// Maps memory that another process has created.
    ///
    /// # Errors
    /// `InvalidData` if the memory is not sealed; otherwise the system's error.
    pub fn open(descriptor: impl AsFd) -> io::Result<Self> {
        // Seals first: once they are seen, neither bytes nor size can change any more.
        if !fcntl_get_seals(&descriptor)?.contains(SEALS) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the memory is not sealed"));
        }
        let length = usize::try_from(fstat(&descriptor)?.st_size)
            .ok()
            .filter(|length| isize::try_from(*length).is_ok())
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "size out of range"))?;
        if length == 0 {
            return Ok(Self { address: NonNull::dangling(), length });
        }
        // Private, because kernels before 6.7 treat every shared mapping as one that may be written
        // to later. The pages are still those of the memory, because nobody writes.
        let (access, flags) = (ProtFlags::READ, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let address = unsafe { mmap(std::ptr::null_mut(), length, access, flags, &descriptor, 0) }?;
        let address = NonNull::new(address.cast())
            .ok_or_else(|| io::Error::other("the kernel mapped memory at address zero"))?;
        Ok(Self { address, length })
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping has that length (or the length is zero, for which a dangling pointer
        // suffices) and lives as long as `self`; by the seals that were seen nobody can write to it
        // or make it shorter.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.length) }
    }
}

impl Drop for SealedView {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: the mapping was made with this length and nobody holds a reference, because
            // `self` is being dropped. It fails only for an address that is not mapped.
            let _ = unsafe { munmap(self.address.as_ptr().cast(), self.length) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_see_the_parts_one_after_the_other() -> io::Result<()> {
        let sealed = SealedBytes::create("test", &[b"one ", b"", b"two"])?;
        assert_eq!(sealed.len(), 7);
        let (one, two) = (SealedView::open(&sealed)?, SealedView::open(&sealed)?);
        drop(sealed);
        assert_eq!(one.bytes(), b"one two");
        drop(one);
        assert_eq!(two.bytes(), b"one two");
        Ok(())
    }

    #[test]
    fn an_empty_payload_is_valid() -> io::Result<()> {
        let sealed = SealedBytes::create("test", &[])?;
        assert!(sealed.is_empty());
        assert_eq!(SealedView::open(&sealed)?.bytes(), b"");
        Ok(())
    }

    #[test]
    fn nobody_can_change_sealed_bytes() -> io::Result<()> {
        let sealed = SealedBytes::create("test", &[b"fixed"])?;
        assert!(rustix::io::pwrite(&sealed, b"x", 0).is_err());
        assert!(rustix::fs::ftruncate(&sealed, 0).is_err());
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let writable = unsafe {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            mmap(std::ptr::null_mut(), 5, access, MapFlags::SHARED, &sealed, 0)
        };
        assert!(writable.is_err());
        Ok(())
    }

    #[test]
    fn memory_that_is_still_writable_is_refused() -> io::Result<()> {
        let open = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        fcntl_add_seals(&open, SealFlags::SHRINK | SealFlags::GROW)?;
        let refused = SealedView::open(&open).map(drop).map_err(|error| error.kind());
        assert_eq!(refused, Err(io::ErrorKind::InvalidData));
        Ok(())
    }
}
