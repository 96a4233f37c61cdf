//! Bytes on the heap behind a pointer of one word.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::slice;

/// Bytes whose number lies in front of them on the heap, so that their owner holds a single word.
/// A boxed slice takes two.
///
/// ```
/// use brigade_sys::thin_bytes::ThinBytes;
///
/// let bytes = ThinBytes::copy(b"abc");
/// assert_eq!(*bytes, *b"abc");
/// assert_eq!(size_of::<Option<ThinBytes>>(), size_of::<usize>());
/// ```
pub struct ThinBytes {
    /// The start of a block of `layout(length)`, where the length is. The bytes follow.
    block: NonNull<usize>,
}

// SAFETY: the block belongs to its owner alone and is never changed, so any thread may read or free
// it.
unsafe impl Send for ThinBytes {}
// SAFETY: as above.
unsafe impl Sync for ThinBytes {}

impl ThinBytes {
    /// Copies bytes to the heap.
    pub fn copy(from: &[u8]) -> Self {
        let layout = layout(from.len());
        // SAFETY: the layout has room for the length at least.
        let Some(block) = NonNull::new(unsafe { alloc(layout) }) else {
            handle_alloc_error(layout)
        };
        let block = block.cast::<usize>();
        // SAFETY: the block is new, aligned for the length, and has room for it and the bytes.
        unsafe {
            block.write(from.len());
            block
                .add(1)
                .cast::<u8>()
                .copy_from_nonoverlapping(NonNull::from(from).cast(), from.len());
        }
        Self { block }
    }
}

#[expect(clippy::expect_used, reason = "the bytes exist, and nothing of half the memory does")]
#[inline]
fn layout(length: usize) -> Layout {
    let size = size_of::<usize>().checked_add(length);
    size.and_then(|size| Layout::from_size_align(size, align_of::<usize>()).ok())
        .expect("no slice is that long")
}

impl Deref for ThinBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `copy` has written the length and as many bytes behind it, nothing changes them,
        // and the block lives as long as the owner that is borrowed here.
        unsafe { slice::from_raw_parts(self.block.add(1).cast::<u8>().as_ptr(), self.block.read()) }
    }
}

impl Drop for ThinBytes {
    #[inline]
    fn drop(&mut self) {
        let layout = layout(self.len());
        // SAFETY: `copy` has allocated the block with this layout, and nobody else has it.
        unsafe { dealloc(self.block.as_ptr().cast(), layout) }
    }
}

impl fmt::Debug for ThinBytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(out)
    }
}

#[cfg(test)]
mod tests {
    use super::ThinBytes;

    #[test]
    fn any_number_of_bytes_is_kept_and_freed() {
        let all: Vec<u8> = (0..=255).cycle().take(5000).collect();
        for length in (0..70).chain([4096, 5000]) {
            let bytes = ThinBytes::copy(&all[..length]);
            let elsewhere = std::thread::spawn(move || bytes.to_vec());
            assert_eq!(elsewhere.join().unwrap(), all[..length]);
        }
    }
}
