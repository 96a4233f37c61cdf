//! Errors of this crate.

#[cfg(feature = "bytemuck")]
use thiserror::Error as ThisError;

/// The bytes of a buffer cannot be viewed as a slice of a type.
#[cfg(feature = "bytemuck")]
#[derive(Clone, Copy, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum TypedError {
    /// The length is not a multiple of the size of an element.
    #[error("a buffer of {length} bytes does not hold whole elements of {size} bytes")]
    Length {
        /// Length of the buffer in bytes.
        length: usize,
        /// Size of an element in bytes.
        size: usize,
    },
    /// The first byte is not aligned. Whole buffers are, for elements that need no more than
    /// [`ALIGNMENT`](crate::shared::ALIGNMENT); a slice of a buffer need not be.
    #[error("the first byte is not aligned to {alignment} bytes: slice the buffer at a multiple")]
    Alignment {
        /// Alignment of an element in bytes.
        alignment: usize,
    },
}

/// The bytes of a buffer cannot be viewed as an array.
#[cfg(feature = "ndarray")]
#[derive(Clone, PartialEq, ThisError)]
#[non_exhaustive]
pub enum ArrayError {
    /// The bytes are no slice of the type.
    #[error(transparent)]
    Elements(#[from] TypedError),
    /// The slice has too few elements for the shape, or the shape is too large.
    #[error("a buffer of {elements} elements does not have this shape")]
    Shape {
        /// Number of elements of the buffer.
        elements: usize,
        /// The reason.
        #[source]
        source: ndarray::ShapeError,
    },
}

#[cfg(feature = "bytemuck")]
impl TypedError {
    /// Returns the reason for which bytes are no slice of `T`.
    pub(crate) fn of<T>(bytes: &[u8]) -> Self {
        let (length, size) = (bytes.len(), size_of::<T>());
        if length.checked_rem(size) == Some(0) {
            Self::Alignment { alignment: align_of::<T>() }
        } else {
            Self::Length { length, size }
        }
    }
}

/// A buffer is serialized or deserialized outside of a message.
pub(crate) const OUTSIDE: &str =
    "a SharedBuf can only be sent as an argument or result of a task; use to_vec()";

/// A message refers to a buffer that did not come with it.
pub(crate) const NO_SUCH_BUFFER: &str = "the message has no buffer of this index";

/// A message refers to bytes behind the end of a buffer.
pub(crate) const NO_SUCH_RANGE: &str = "the range exceeds the buffer of the message";

#[cfg(feature = "bytemuck")]
brigade_sys::debug_as_text!(TypedError);
#[cfg(feature = "ndarray")]
brigade_sys::debug_as_text!(ArrayError);
