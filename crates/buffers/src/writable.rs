//! Bytes that are being written.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::heap::Heap;
use crate::memory::Backing;
use crate::shared::SharedBuf;

/// Bytes that are written in place and then frozen.
///
/// There is no way to write them after [`freeze`](Self::freeze), which consumes the only handle
/// that can.
///
/// ```
/// use brigade_buffers::SharedBufMut;
///
/// let mut buffer = SharedBufMut::on_heap(5);
/// buffer.copy_from_slice(b"hello");
/// assert_eq!(&buffer.freeze()[..], b"hello");
/// ```
pub struct SharedBufMut(Writable);

#[derive(Debug)]
enum Writable {
    Heap(Heap),
}

impl SharedBufMut {
    /// Allocates zeroed bytes on the heap, which are copied into each message. Use the `alloc` of a
    /// pool or of `brigade::worker` for memory that is shared.
    pub fn on_heap(length: usize) -> Self {
        Self(Writable::Heap(Heap::zeroed(length)))
    }

    /// Ends writing.
    pub fn freeze(self) -> SharedBuf {
        match self.0 {
            Writable::Heap(heap) => SharedBuf::of(Backing::Heap(heap)),
        }
    }
}

#[cfg(feature = "bytemuck")]
impl SharedBufMut {
    /// Returns the bytes as a slice of a plain type, to be written in place.
    ///
    /// # Errors
    /// If the bytes are not whole elements.
    pub fn typed_mut<T: bytemuck::Pod>(&mut self) -> Result<&mut [T], crate::TypedError> {
        let error = crate::TypedError::of::<T>(self);
        bytemuck::try_cast_slice_mut(self).map_err(|_| error)
    }
}

impl Deref for SharedBufMut {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Writable::Heap(heap) => heap.as_bytes(),
        }
    }
}

impl DerefMut for SharedBufMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Writable::Heap(heap) => heap.as_mut_bytes(),
        }
    }
}

impl fmt::Debug for SharedBufMut {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SharedBufMut").field("len", &self.len()).finish_non_exhaustive()
    }
}
