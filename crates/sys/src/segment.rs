//! Anonymous shared memory, accessed as atomic words.
//!
//! The memory has no name, so nothing can be left behind; it cannot shrink (sealed), so an access
//! never raises SIGBUS. Both sides access it only through atomics, so a process that scribbles over
//! it changes values and nothing else.

use std::io;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::file_limit;

/// A piece of shared memory; see the [module](self).
#[derive(Debug)]
pub struct Segment {
    descriptor: OwnedFd,
    mapped: Mapped,
}

/// A mapping of a whole segment.
#[derive(Debug)]
struct Mapped {
    address: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the mapping belongs to the value and is reached only as shared references to atomics.
unsafe impl Send for Mapped {}
// SAFETY: see above; atomics may be used from any thread.
unsafe impl Sync for Mapped {}

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

impl Segment {
    /// Creates a segment of `words` words, all zero. The name appears only in `/proc`.
    ///
    /// # Errors
    /// If memory or descriptors run out.
    pub fn create(name: &str, words: usize) -> io::Result<Self> {
        let descriptor = memory(name, words)?;
        fcntl_add_seals(&descriptor, SEALS)?;
        let mapped = Mapped::new(&descriptor, words, ProtFlags::READ | ProtFlags::WRITE)?;
        Ok(Self { descriptor, mapped })
    }

    /// Like [`create`](Self::create), but nobody else can write to it: others map it as a
    /// [`SegmentView`].
    ///
    /// # Errors
    /// If memory or descriptors run out.
    pub fn create_for_readers(name: &str, words: usize) -> io::Result<Self> {
        let descriptor = memory(name, words)?;
        let mapped = Mapped::new(&descriptor, words, ProtFlags::READ | ProtFlags::WRITE)?;
        // From now on; our own mapping existed before.
        fcntl_add_seals(&descriptor, SEALS | SealFlags::FUTURE_WRITE)?;
        Ok(Self { descriptor, mapped })
    }

    /// Maps a segment that another process has created.
    ///
    /// # Errors
    /// `InvalidData` if it is not a sealed segment of `words` words; otherwise the system's error.
    pub fn open(descriptor: OwnedFd, words: usize) -> io::Result<Self> {
        let mapped = Mapped::open(&descriptor, words, ProtFlags::READ | ProtFlags::WRITE)?;
        Ok(Self { descriptor, mapped })
    }

    /// Returns the words.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        self.mapped.words()
    }
}

crate::as_fd!(Segment, descriptor);

impl Mapped {
    fn open(descriptor: &OwnedFd, words: usize, access: ProtFlags) -> io::Result<Self> {
        let bytes = size_in_bytes(words)?;
        // Seals first: once they are seen, the size cannot change any more.
        if !fcntl_get_seals(descriptor)?.contains(SEALS)
            || usize::try_from(fstat(descriptor)?.st_size) != Ok(bytes)
        {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "not a sealed segment of the expected size",
            ));
        }
        Self::new(descriptor, words, access)
    }

    fn new(descriptor: &OwnedFd, words: usize, access: ProtFlags) -> io::Result<Self> {
        let length = size_in_bytes(words)?;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let address =
            unsafe { mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, descriptor, 0) }?;
        let address = NonNull::new(address.cast())
            .ok_or_else(|| io::Error::other("the kernel mapped memory at address zero"))?;
        Ok(Self { address, words })
    }

    #[inline]
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has that length, is aligned to a page, lives as long as `self`, holds
        // any bit pattern, and is accessed by all processes only through atomics; the seal keeps
        // the pages there.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.words) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let length = self.words * size_of::<u64>();
        // SAFETY: the mapping was made with this length and nobody holds a reference, because
        // `self` is being dropped. It fails only for an address that is not mapped.
        let _ = unsafe { munmap(self.address.as_ptr().cast(), length) };
    }
}

/// A range of a segment's words, which keeps the segment mapped. Reaching them takes one memory
/// access fewer than through the segment.
#[derive(Debug, Clone)]
pub struct Words {
    /// Keeps the words where they are.
    _segment: Arc<Segment>,
    first: NonNull<AtomicU64>,
    length: usize,
}

// SAFETY: the words are reached only as shared references to atomics, and the segment, which may be
// used from any thread, is kept by the value.
unsafe impl Send for Words {}
// SAFETY: see above.
unsafe impl Sync for Words {}

impl Words {
    /// Returns `length` words from `offset` on; `None` if the segment is too short.
    pub fn of(segment: &Arc<Segment>, offset: usize, length: usize) -> Option<Self> {
        let words = segment.words().get(offset..)?.get(..length)?;
        let first = NonNull::from(words).cast();
        Some(Self { first, length, _segment: Arc::clone(segment) })
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: `of` has taken the pointer and the length from a slice of the segment's words,
        // which stay where they are as long as the segment, and so as long as `self`.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.length) }
    }
}

/// A segment that another process writes to, and this one cannot. It keeps no descriptor, because
/// others may have got the same open file.
#[derive(Debug)]
pub struct SegmentView(Mapped);

impl SegmentView {
    /// Maps a segment that another process has created.
    ///
    /// # Errors
    /// Like [`Segment::open`].
    pub fn open(descriptor: OwnedFd, words: usize) -> io::Result<Self> {
        Mapped::open(&descriptor, words, ProtFlags::READ).map(Self)
    }

    /// Returns a word.
    ///
    /// # Panics
    /// If `index` is out of range.
    #[inline]
    pub fn load(&self, index: usize) -> u64 {
        // The pages cannot be written to; a relaxed load of a word is a plain read.
        self.0.words()[index].load(Ordering::Relaxed)
    }
}

/// Creates memory that is not sealed yet.
fn memory(name: &str, words: usize) -> io::Result<OwnedFd> {
    let bytes = size_in_bytes(words)?;
    file_limit::check(bytes as u64)?;
    let descriptor = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&descriptor, bytes as u64)?;
    Ok(descriptor)
}

/// Checked, because a product that wraps around would make [`Segment::words`] longer than the
/// memory behind it.
fn size_in_bytes(words: usize) -> io::Result<usize> {
    words
        .checked_mul(size_of::<u64>())
        .filter(|bytes| (1..=isize::MAX as usize).contains(bytes))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "segment size out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn both_mappings_are_the_same_memory() -> io::Result<()> {
        let host = Segment::create("test", 100)?;
        let worker = Segment::open(host.as_fd().try_clone_to_owned()?, 100)?;
        worker.words()[99].store(7, Ordering::Release);
        assert_eq!(host.words()[99].load(Ordering::Acquire), 7);
        assert_eq!(host.words()[98].load(Ordering::Acquire), 0);
        Ok(())
    }

    #[test]
    fn words_outlive_the_segment_they_were_taken_from() -> io::Result<()> {
        let segment = Arc::new(Segment::create("test", 8)?);
        segment.words()[6].store(7, Ordering::Relaxed);
        assert!(Words::of(&segment, 6, 3).is_none() && Words::of(&segment, 9, 0).is_none());
        assert!(Words::of(&segment, usize::MAX, 2).is_none());
        let words = Words::of(&segment, 6, 2).ok_or(io::ErrorKind::InvalidInput)?;
        drop(segment);
        assert_eq!((words.len(), words[0].load(Ordering::Relaxed)), (2, 7));
        Ok(())
    }

    #[test]
    fn a_segment_cannot_shrink_and_its_size_is_checked() -> io::Result<()> {
        let segment = Segment::create("test", 8)?;
        assert!(ftruncate(segment.as_fd(), 0).is_err());
        let other = segment.as_fd().try_clone_to_owned()?;
        assert_eq!(
            Segment::open(other, 9).map(drop).map_err(|error| error.kind()),
            Err(io::ErrorKind::InvalidData)
        );
        Ok(())
    }

    #[test]
    fn only_the_creator_writes_to_a_segment_for_readers() -> io::Result<()> {
        let segment = Segment::create_for_readers("test", 8)?;
        let other = || segment.as_fd().try_clone_to_owned();
        let view = SegmentView::open(other()?, 8)?;
        segment.words()[7].store(7, Ordering::Relaxed);
        assert_eq!(view.load(7), 7);
        assert!(Segment::open(other()?, 8).is_err(), "not even with its descriptor");
        assert!(rustix::io::pwrite(&segment, &[1], 0).is_err());
        Ok(())
    }

    #[test]
    fn memory_that_could_still_shrink_is_refused() -> io::Result<()> {
        let unsealed = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&unsealed, 64)?;
        assert!(Segment::open(unsealed, 8).is_err());
        Ok(())
    }

    #[test]
    fn impossible_sizes_are_refused() {
        for words in [0, usize::MAX, usize::MAX / 8 + 2] {
            assert_eq!(
                Segment::create("test", words).map(drop).map_err(|error| error.kind()),
                Err(io::ErrorKind::InvalidInput)
            );
        }
    }
}
