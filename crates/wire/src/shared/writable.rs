//! Bytes that are being written.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use brigade_sys::arena::{
    AllocError, ArgumentArena, ArgumentBlock, ResultArena, ResultBlock, WhenFull,
};

use crate::shared::buf::SharedBuf;
use crate::shared::heap::Heap;
use crate::shared::memory::Backing;

/// Bytes that are written in place and then frozen.
///
/// There is no way to write them after [`freeze`](Self::freeze), which consumes the only handle
/// that can.
///
/// ```
/// use brigade_wire::shared::SharedBufMut;
///
/// let mut buffer = SharedBufMut::on_heap(5);
/// buffer.copy_from_slice(b"hello");
/// assert_eq!(&buffer.freeze()[..], b"hello");
/// ```
pub struct SharedBufMut(Writable);

#[derive(Debug)]
enum Writable {
    Heap(Heap),
    Arguments(ArgumentBlock),
    Results(ResultBlock),
}

impl SharedBufMut {
    /// Allocates zeroed bytes on the heap, which are copied into each message. Use the `alloc` of a
    /// pool or of `brigade::worker` for memory that is shared.
    pub fn on_heap(length: usize) -> Self {
        Self(Writable::Heap(Heap::zeroed(length)))
    }

    /// Allocates a block of the arena of arguments, with arbitrary bytes: on the host.
    ///
    /// # Errors
    /// If the arena has no room, and `when_full` says not to wait.
    pub fn in_arguments(
        arena: &Arc<ArgumentArena>,
        length: usize,
        when_full: WhenFull,
    ) -> Result<Self, AllocError> {
        let block = arena.allocate_within_budget(length, when_full)?;
        Ok(Self(Writable::Arguments(block)))
    }

    /// Allocates a block of a worker's arena, with arbitrary bytes: on the worker, in any thread.
    ///
    /// # Errors
    /// If the arena has no room, and `when_full` says not to wait.
    pub fn in_results(
        arena: &Arc<ResultArena>,
        length: usize,
        when_full: WhenFull,
    ) -> Result<Self, AllocError> {
        Ok(Self(Writable::Results(arena.allocate_block(length, when_full)?)))
    }

    /// Ends writing.
    ///
    /// If the pool demands read-only memory and the process has too many mappings for that, the
    /// bytes are copied to the heap.
    pub fn freeze(self) -> SharedBuf {
        SharedBuf::of(match self.0 {
            Writable::Heap(heap) => Backing::Heap(heap),
            Writable::Arguments(block) => Backing::Arguments(block.freeze()),
            Writable::Results(block) => match block.freeze() {
                Ok(block) => Backing::Own(block),
                Err(block) => Backing::Heap(Heap::copy_of(block.as_bytes())),
            },
        })
    }
}

#[cfg(feature = "bytemuck")]
impl SharedBufMut {
    /// Returns the bytes as a slice of a plain type, to be written in place.
    ///
    /// # Errors
    /// If the bytes are not whole elements.
    pub fn typed_mut<T: bytemuck::Pod>(&mut self) -> Result<&mut [T], crate::shared::TypedError> {
        let error = crate::shared::TypedError::of::<T>(self);
        bytemuck::try_cast_slice_mut(self).map_err(|_| error)
    }
}

impl Deref for SharedBufMut {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Writable::Heap(heap) => heap.as_bytes(),
            Writable::Arguments(block) => block.as_bytes(),
            Writable::Results(block) => block.as_bytes(),
        }
    }
}

impl DerefMut for SharedBufMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Writable::Heap(heap) => heap.as_mut_bytes(),
            Writable::Arguments(block) => block.as_mut_bytes(),
            Writable::Results(block) => block.as_mut_bytes(),
        }
    }
}

brigade_sys::debug_fields! {
    impl SharedBufMut { |it| len: it.len() }
}
