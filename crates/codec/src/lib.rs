//! Encodes arguments and results: postcard with a limit, and bulk bytes without a detour.
//!
//! Programs can use this crate alone, without the facade `brigade`.
//!
//! [`encode`] and [`decode`] work on any serde type. [`decode_from`] reads from a [`Source`] that
//! somebody else may write to, for example shared memory. [`contiguous_parts`] returns the bytes of
//! a vector of numbers or `String` without copying them. [`Encoded`] is a value that is encoded
//! already.
//!
//! ```
//! let mut bytes = Vec::new();
//! brigade_codec::encode(&(1_u8, "two".to_owned()), &mut bytes, 100)?;
//! assert_eq!(brigade_codec::decode::<(u8, String)>(&bytes)?, (1, "two".to_owned()));
//! # Ok::<(), brigade_codec::CodecError>(())
//! ```

//! # Invariants
//! - The format is postcard's, byte for byte, except for a value that is a vector of numbers of
//!   several bytes: its elements follow their number as they are in memory, in little-endian.
//! - Encoding never takes more memory than the limit; decoding believes a length only as far as
//!   bytes are there.

#![forbid(unsafe_code)]

mod codec;
mod contiguous;
mod encoded;
mod error;
pub mod packed;
pub mod parts;
mod reason;

pub use brigade_sys::chain;
pub use codec::{Source, decode, decode_from, encode, is_err};
pub use contiguous::{Prefix, contiguous_parts, from_numbers, into_numbers};
pub use encoded::Encoded;
pub use error::CodecError;
