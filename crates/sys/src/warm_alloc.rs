//! A global allocator that keeps large freed blocks.
//!
//! Memory that a process gets from the system is cleared first, page by page, which takes as long
//! as copying into it. glibc returns blocks from 32 MiB on to the system when they are freed, and
//! smaller ones when more than two of the last size are free.
//!
//! A block of at least [`SMALLEST`] bytes is a mapping whose length follows from its size alone. So
//! it needs no header, and a kept block serves each size of its class. Kept blocks lie in slots of
//! one word each, which a thread empties by exchanging the word with null: whoever gets the address
//! owns the block. There is no lock that a fork of the process could find taken.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use rustix::mm::{
    Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap, munmap,
};

/// The system's allocator, except that freed blocks of 4 MiB and more stay with the process, in
/// huge pages, and serve later allocations.
///
/// Use it as the global allocator of a program that passes payloads of this size to workers: the
/// program is the host and all workers. A process keeps 32 blocks, and in all 1 GiB by default,
/// which count as its memory.
///
/// ```
/// use brigade_sys::warm_alloc::WarmAlloc;
///
/// #[global_allocator]
/// static ALLOCATOR: WarmAlloc = WarmAlloc::new();
///
/// let block = vec![1_u8; 64 << 20];
/// let address = block.as_ptr();
/// drop(block);
/// assert_eq!(vec![2_u8; 64 << 20].as_ptr(), address);
/// ```
#[derive(Debug)]
pub struct WarmAlloc {
    kept: [AtomicPtr<u8>; SLOTS],
    /// Bytes of the blocks in the slots, and of those on their way there.
    bytes: AtomicUsize,
    /// Counts kept blocks. The next one replaces the oldest if all slots are taken.
    turn: AtomicUsize,
    limit: usize,
}

/// Size in bytes from which on freed blocks are kept: two huge pages.
pub const SMALLEST: usize = 4 << 20;

const SLOTS: usize = 32;

/// Bytes that a process keeps by default.
const KEPT: usize = 1 << 30;

/// Size of a huge page on most processors. Mappings begin at a multiple of it.
const HUGE: usize = 2 << 20;

/// Alignment that each mapping has.
const PAGE: usize = 4 << 10;

impl WarmAlloc {
    /// Creates the allocator, which keeps up to 1 GiB in each process.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_limit(KEPT)
    }

    /// Creates the allocator, which keeps up to `limit` bytes in each process.
    #[must_use]
    pub const fn with_limit(limit: usize) -> Self {
        let kept = [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS];
        Self { kept, bytes: AtomicUsize::new(0), turn: AtomicUsize::new(0), limit }
    }

    /// Returns the number of bytes in freed blocks that are kept.
    pub fn kept(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Takes a kept block of this length, with arbitrary contents.
    fn take(&self, length: usize) -> Option<NonNull<u8>> {
        if self.kept() < length {
            return None;
        }
        for slot in &self.kept {
            let Some(block) = empty(slot) else { continue };
            if length_of_kept(block) == length {
                self.bytes.fetch_sub(length, Ordering::Relaxed);
                return Some(block);
            }
            self.put(block);
        }
        None
    }

    /// Keeps a block, or unmaps it if it exceeds the limit alone.
    fn keep(&self, block: NonNull<u8>, length: usize) {
        if length > self.limit {
            unmap(block, length);
            return;
        }
        // SAFETY: the block is free, writable, aligned, and larger than a word.
        unsafe { block.cast::<usize>().write(length) };
        self.bytes.fetch_add(length, Ordering::Relaxed);
        self.put(block);
        for slot in self.oldest_first() {
            if self.kept() <= self.limit {
                break;
            }
            if let Some(block) = empty(slot) {
                self.let_go(block);
            }
        }
    }

    /// Puts a block into an empty slot, or in place of the oldest block.
    fn put(&self, block: NonNull<u8>) {
        for slot in &self.kept {
            let (null, new) = (ptr::null_mut(), block.as_ptr());
            if slot.compare_exchange(null, new, Ordering::Release, Ordering::Relaxed).is_ok() {
                return;
            }
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let replaced = self.kept[turn % SLOTS].swap(block.as_ptr(), Ordering::AcqRel);
        if let Some(replaced) = NonNull::new(replaced) {
            self.let_go(replaced);
        }
    }

    /// Unmaps a block that was kept.
    fn let_go(&self, block: NonNull<u8>) {
        let length = length_of_kept(block);
        self.bytes.fetch_sub(length, Ordering::Relaxed);
        unmap(block, length);
    }

    /// Returns the slots, the block that was kept last in the last one if they were filled in turn.
    fn oldest_first(&self) -> impl Iterator<Item = &AtomicPtr<u8>> {
        let (newer, older) = self.kept.split_at(self.turn.load(Ordering::Relaxed) % SLOTS);
        older.iter().chain(newer)
    }
}

impl Default for WarmAlloc {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: small blocks are the system's. A large one is a mapping of `length_of` bytes, no fewer
// than its layout has, and belongs to whoever has allocated it, to a slot, or to the thread
// that has emptied that slot. Nothing here panics or allocates.
unsafe impl GlobalAlloc for WarmAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(length) = length_of(layout) else {
            // SAFETY: the caller guarantees what this function requires as well.
            return unsafe { System.alloc(layout) };
        };
        address(self.take(length).or_else(|| map(length)))
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // Clearing a block now would take as long as clearing pages when they are used, and all of
        // them may never be.
        match length_of(layout) {
            Some(length) => address(map(length)),
            // SAFETY: as above.
            None => unsafe { System.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match (length_of(layout), NonNull::new(block)) {
            (Some(length), Some(block)) => self.keep(block, length),
            // SAFETY: as above.
            _ => unsafe { System.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that the size, rounded up, does not overflow.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (length_of(layout), length_of(wanted)) {
            // SAFETY: as above.
            (None, None) => unsafe { System.realloc(block, layout, size) },
            (Some(old), Some(new)) => remap(block, old, new),
            _ => {
                // SAFETY: both blocks have at least the smaller of both sizes, the new one is not
                // the old one, and the old one is not used afterwards.
                unsafe {
                    let moved = self.alloc(wanted);
                    if !moved.is_null() {
                        ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    moved
                }
            }
        }
    }
}

/// Returns the length of the mapping for a large block; `None` if it is the system's.
///
/// There are eight lengths between a power of two and the next, so that a mapping has at most an
/// eighth more than the block, of which the system provides nothing before it is touched.
fn length_of(layout: Layout) -> Option<usize> {
    let size = layout.size();
    if !cfg!(all(target_os = "linux", not(brigade_elsewhere)))
        || size < SMALLEST
        || layout.align() > PAGE
    {
        return None;
    }
    size.checked_next_multiple_of((1 << size.ilog2()) / 8)
}

fn address(block: Option<NonNull<u8>>) -> *mut u8 {
    block.map_or(ptr::null_mut(), NonNull::as_ptr)
}

/// Empties a slot, and returns the block that is the caller's now.
fn empty(slot: &AtomicPtr<u8>) -> Option<NonNull<u8>> {
    NonNull::new(slot.swap(ptr::null_mut(), Ordering::Acquire))
}

/// Returns the length of a kept block that is the caller's.
fn length_of_kept(block: NonNull<u8>) -> usize {
    // SAFETY: the thread that has put the block into a slot has written it there before.
    unsafe { block.cast::<usize>().read() }
}

/// Maps a block of zeros, in huge pages where the system offers them.
fn map(length: usize) -> Option<NonNull<u8>> {
    let whole = length.checked_add(HUGE)?;
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping, at an address of the system's choice.
    let start = unsafe { mmap_anonymous(ptr::null_mut(), whole, access, flags) }.ok()?.cast::<u8>();
    let before = start.align_offset(HUGE).min(HUGE);
    let block = NonNull::new(start.wrapping_add(before))?;
    if before > 0 {
        unmap(NonNull::new(start)?, before);
    }
    if before < HUGE {
        unmap(NonNull::new(start.wrapping_add(before + length))?, HUGE - before);
    }
    // SAFETY: the mapping is ours, and the advice changes no byte of it. It is for the system to
    // follow or not.
    let _ = unsafe { madvise(block.as_ptr().cast(), length, Advice::LinuxHugepage) };
    Some(block)
}

/// Returns the block with another length. It may move, without a copy. Returns null, and leaves the
/// block, if there is no memory.
fn remap(block: *mut u8, old: usize, new: usize) -> *mut u8 {
    if old == new {
        return block;
    }
    // SAFETY: the mapping is the caller's, who does not use its old address after it has moved.
    let moved = unsafe { mremap(block.cast(), old, new, MremapFlags::MAYMOVE) };
    moved.map_or(ptr::null_mut(), <*mut c_void>::cast)
}

/// Returns a mapping, or a part of one, that is the caller's to the system.
fn unmap(start: NonNull<u8>, length: usize) {
    // SAFETY: nobody else knows of it. If the system has no room for the description of what
    // remains, the memory stays mapped, and unused.
    let _ = unsafe { munmap(start.as_ptr().cast(), length) };
}

#[cfg(test)]
mod tests;
