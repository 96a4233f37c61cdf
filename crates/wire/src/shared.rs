//! Bytes that travel between a host and its workers by reference and not by copy.
//!
//! A [`SharedBufMut`] is written in place; [`freeze`](SharedBufMut::freeze) makes a [`SharedBuf`]
//! of it, which nobody can write and which is as cheap to clone as an `Arc`. Both can be a part of
//! any argument or result of a task. A serializer then gets three numbers, and the bytes stay where
//! they are.
//!
//! For that, host and worker serialize arguments and results inside [`exporting`], which collects
//! the buffers, and deserialize them inside [`importing`], which has the buffers of the message.
//! [`SharedBuf::place`] says where the bytes of a buffer lie, which a message has to name.
//!
//! ```
//! use brigade_wire::codec;
//! use brigade_wire::shared::{SharedBuf, SharedBufMut, exporting, importing};
//!
//! let mut image = SharedBufMut::on_heap(1 << 20);
//! image.fill(7);
//! let image: SharedBuf = image.freeze();
//! let rows = (image.slice(..1024), image.slice(1024..2048));
//!
//! let (encoded, buffers) = exporting(|| {
//!     let mut encoded = Vec::new();
//!     codec::encode(&rows, &mut encoded, 100).map(|()| encoded)
//! });
//! let buffers = buffers.unwrap_or_default();
//! assert_eq!(buffers.len(), 1, "both rows are parts of one buffer");
//!
//! let encoded = encoded?;
//! let decoded = importing(&buffers, || codec::decode(&encoded))?;
//! let decoded: (SharedBuf, SharedBuf) = decoded;
//! assert_eq!(decoded.1, image.slice(1024..2048));
//! # Ok::<(), brigade_wire::codec::CodecError>(())
//! ```
//!
//! # Constructors
//!
//! | on | memory | allocated by | received by |
//! |---|---|---|---|
//! | both | heap | [`SharedBufMut::on_heap`] | [`SharedBuf::copy_of`] |
//! | host | arguments | [`SharedBufMut::in_arguments`] | – |
//! | host | results of a worker | – | [`SharedBuf::from_loan`] |
//! | worker | arguments, results of another worker | – | [`SharedBuf::lent`] |
//! | worker | its own results | [`SharedBufMut::in_results`] | [`SharedBuf::lent`] |
//! | worker | an argument of all workers | – | [`SharedBuf::in_sealed`] |
//!
//! A worker counts each message that names a buffer which it has allocated: [`SharedBuf::export`].
//!
//! # Invariants
//!
//! - The bytes of a `SharedBuf` never change while it exists.
//! - The first byte of a whole buffer is aligned to [`ALIGNMENT`] bytes.
//! - Serialized references are checked: a wrong index or range is an error of the deserializer.

#[cfg(feature = "ndarray")]
mod array;
mod buf;
mod error;
mod export;
mod heap;
mod import;
mod lazy_copy;
mod memory;
mod scope;
mod serialize;
#[cfg(test)]
mod tests;
mod writable;

pub use buf::SharedBuf;
#[cfg(feature = "ndarray")]
pub use error::ArrayError;
#[cfg(feature = "bytemuck")]
pub use error::TypedError;
pub use export::Export;
pub use memory::Guard;
pub use scope::{exporting, importing};
pub use writable::SharedBufMut;

pub use brigade_sys::arena::{AllocError, ArenaRef, ForeignArena, Protection, WhenFull};

/// The alignment in bytes of every whole buffer: a cache line, and enough for vector instructions.
pub const ALIGNMENT: usize = 64;
