//! An allocator that counts, to find out what an operation allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator, which counts allocations and their bytes. Use it as the global
/// allocator.
#[derive(Debug, Default)]
pub struct CountingAllocator {
    allocations: AtomicU64,
    bytes: AtomicU64,
}

/// A number of allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocations {
    /// Number of allocations.
    pub count: u64,
    /// Number of bytes that were asked for.
    pub bytes: u64,
}

impl CountingAllocator {
    /// Creates the allocator.
    #[must_use]
    pub const fn new() -> Self {
        Self { allocations: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    /// Returns the allocations of all threads while `act` runs. One that grows counts as another
    /// one of the additional bytes.
    pub fn count(&self, act: impl FnOnce()) -> Allocations {
        let before = self.total();
        act();
        let after = self.total();
        Allocations { count: after.count - before.count, bytes: after.bytes - before.bytes }
    }

    fn total(&self) -> Allocations {
        let count = self.allocations.load(Ordering::Relaxed);
        Allocations { count, bytes: self.bytes.load(Ordering::Relaxed) }
    }

    fn add(&self, bytes: usize) {
        self.allocations.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

// SAFETY: everything is left to the system's allocator, and counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller guarantees what this function requires as well.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: as above. The system has pages of zeros, which take no memory until they change.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > layout.size() {
            self.add(size - layout.size());
        }
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }
}
