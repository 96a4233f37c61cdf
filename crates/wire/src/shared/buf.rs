//! Immutable bytes with any number of owners.

use std::ops::{Bound, Deref, Range, RangeBounds};
use std::sync::Arc;

use crate::segments::Segment;
use crate::shared::heap::Heap;
use crate::shared::memory::{Backing, Memory};

/// Immutable bytes that host and workers share. Cloning and slicing never copies them.
///
/// A `SharedBuf` can be a part of any argument or result of a task. It travels as a reference to
/// shared memory, so its length does not matter. Buffers on the heap are the exception: those made
/// from a vector, and all of them where a pool has no shared memory (the ipc link, or little
/// address space). Their bytes are copied into the message.
///
/// The buffers of a host, and those of each worker, have less than 16 GiB together, or what the
/// address space allows; a larger allocation fails. In the argument of an initializer, the memory
/// of the machine is the only limit.
///
/// In the argument of an initializer or of `preload`, the bytes are copied once, when the pool is
/// configured, and all workers read that copy in place.
///
/// A buffer cannot be serialized for anything but a message of a pool: that is an error. Use
/// [`to_vec`](slice::to_vec) for a file or a socket.
///
/// ```
/// use brigade_wire::shared::SharedBuf;
///
/// let buffer = SharedBuf::from(b"header body".to_vec());
/// let body = buffer.slice(7..);
/// drop(buffer);
/// assert_eq!(&body[..], b"body");
/// ```
#[derive(Clone)]
pub struct SharedBuf {
    memory: Arc<Memory>,
    range: Range<usize>,
}

impl SharedBuf {
    /// Copies bytes into a new buffer on the heap.
    pub fn copy_of(bytes: &[u8]) -> Self {
        Self::of(Backing::Heap(Heap::copy_of(bytes)))
    }

    pub(crate) fn of(backing: Backing) -> Self {
        Self::whole(Memory::new(backing, None))
    }

    /// Returns the buffer that is all of a memory.
    pub(crate) fn whole(memory: Arc<Memory>) -> Self {
        let range = 0..memory.len();
        Self { memory, range }
    }

    /// Returns the bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.memory.as_bytes()[self.range.clone()]
    }

    /// Returns a part of the bytes, which keeps the memory of the whole.
    ///
    /// # Panics
    /// If the range exceeds the buffer.
    #[must_use]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Self {
        let from = match range.start_bound() {
            Bound::Included(&from) => Some(from),
            Bound::Excluded(&before) => before.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let to = match range.end_bound() {
            Bound::Included(&last) => last.checked_add(1),
            Bound::Excluded(&to) => Some(to),
            Bound::Unbounded => Some(self.range.len()),
        };
        let part = from.zip(to).and_then(|(from, to)| self.part(from, to));
        part.unwrap_or_else(|| panic!("the range exceeds the {} bytes of the buffer", self.len()))
    }

    /// Returns a part of the bytes; `None` if the range exceeds them.
    pub(crate) fn part(&self, from: usize, to: usize) -> Option<Self> {
        (from <= to && to <= self.range.len()).then(|| {
            let range = self.range.start + from..self.range.start + to;
            Self { memory: Arc::clone(&self.memory), range }
        })
    }

    /// Returns the segment by which a message names the whole buffer, of which this may be a slice;
    /// `None` if the bytes have to be a part of the message.
    pub fn name(&self) -> Option<Segment<'static>> {
        self.memory.name()
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Returns the whole buffer, of which this may be a slice.
    pub(crate) fn to_whole(&self) -> Self {
        Self::whole(Arc::clone(&self.memory))
    }

    /// Returns the position of the bytes in the whole buffer.
    pub(crate) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Returns the bytes as a buffer that is sent in their place, if sending the whole buffer would
    /// copy far more than these: a part of memory that all workers have.
    pub(crate) fn copy_for_message(&self) -> Option<Self> {
        let is_part = self.range.len() < self.memory.len();
        (is_part && self.memory.is_sealed()).then(|| Self::copy_of(self))
    }

    /// Returns `true` if both are parts of the same whole buffer.
    pub(crate) fn shares_memory(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.memory, &other.memory)
    }
}

#[cfg(feature = "bytemuck")]
impl SharedBuf {
    /// Returns the bytes as a slice of a plain type, without a copy.
    ///
    /// ```
    /// use brigade_wire::shared::SharedBufMut;
    ///
    /// let mut samples = SharedBufMut::on_heap(4 * size_of::<f32>());
    /// samples.typed_mut::<f32>()?.copy_from_slice(&[0.5, 1.0, 1.5, 2.0]);
    /// let samples = samples.freeze();
    /// assert_eq!(samples.typed::<f32>()?.iter().sum::<f32>(), 5.0);
    /// # Ok::<(), brigade_wire::shared::TypedError>(())
    /// ```
    ///
    /// # Errors
    /// If the bytes are not whole elements, or a slice of a buffer does not start at a multiple of
    /// their alignment.
    pub fn typed<T: bytemuck::AnyBitPattern>(&self) -> Result<&[T], crate::shared::TypedError> {
        bytemuck::try_cast_slice(self.as_slice())
            .map_err(|_| crate::shared::TypedError::of::<T>(self.as_slice()))
    }
}

/// Copies the bytes unless they happen to be aligned. The buffer is on the heap.
impl From<Vec<u8>> for SharedBuf {
    fn from(bytes: Vec<u8>) -> Self {
        Self::of(Backing::Heap(Heap::of(bytes)))
    }
}

/// Passes the bytes on without a copy. The `Bytes` keep the memory of the buffer.
///
/// ```
/// use brigade_wire::shared::SharedBuf;
/// use bytes::Bytes;
///
/// let buffer = SharedBuf::copy_of(b"header body");
/// let body = Bytes::from(buffer.slice(7..));
/// assert_eq!(body.as_ptr(), buffer[7..].as_ptr());
/// ```
///
/// Arrow takes the `Bytes` without a copy too, by `arrow_buffer::Buffer::from`.
#[cfg(feature = "bytes")]
impl From<SharedBuf> for bytes::Bytes {
    fn from(buffer: SharedBuf) -> Self {
        Self::from_owner(buffer)
    }
}

impl Deref for SharedBuf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for SharedBuf {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

/// Compares the bytes.
impl PartialEq for SharedBuf {
    fn eq(&self, other: &Self) -> bool {
        (self.shares_memory(other) && self.range == other.range)
            || self.as_slice() == other.as_slice()
    }
}

impl Eq for SharedBuf {}

brigade_sys::debug_fields! {
    impl SharedBuf { |it| len: it.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_share_the_memory_of_the_whole() {
        let buffer = SharedBuf::from((0..100).collect::<Vec<u8>>());
        let middle = buffer.slice(10..=20);
        let inner = middle.slice(5..);
        assert_eq!(&inner[..], [15, 16, 17, 18, 19, 20]);
        assert!(inner.shares_memory(&buffer));
        assert_eq!(inner.to_whole(), buffer);
        assert_eq!(inner, SharedBuf::copy_of(&[15, 16, 17, 18, 19, 20]));
        assert_ne!(inner, buffer);
        assert!(buffer.slice(100..).is_empty());
        assert_eq!(inner.to_vec(), [15, 16, 17, 18, 19, 20]);
    }

    #[test]
    fn a_slice_beyond_the_end_panics() {
        let buffer = SharedBuf::copy_of(b"four").slice(1..3);
        for (from, to) in [(0, 3), (2, 1), (3, 3), (0, usize::MAX)] {
            let sliced = std::panic::catch_unwind(|| buffer.slice(from..to));
            assert!(sliced.is_err(), "{from}..{to}");
        }
        assert!(std::panic::catch_unwind(|| buffer.slice(0..=usize::MAX)).is_err());
    }

    #[test]
    fn its_debug_text_has_no_bytes() {
        let text = format!("{:?}", SharedBuf::copy_of(b"secret"));
        assert_eq!(text, "SharedBuf { len: 6, .. }");
    }

    #[test]
    fn buffers_may_cross_threads() {
        fn check<T: Send + Sync + std::panic::UnwindSafe>() {}
        check::<SharedBuf>();
        check::<crate::shared::SharedBufMut>();
    }
}
