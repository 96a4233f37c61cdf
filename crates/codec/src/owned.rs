//! Encoded bytes whose memory can become that of the value.

use std::any::TypeId;

use serde::de::DeserializeOwned;

use crate::codec::{decode, is_err};
use crate::contiguous::{contiguous_parts, from_bytes};
use crate::encoded::Encoded;
use crate::error::CodecError;

/// The encoding of a value: of a `Vec<u8>` or `String` its bytes, without their number.
///
/// ```
/// use brigade_codec::Owned;
///
/// let bytes = vec![7; 100];
/// let address = bytes.as_ptr();
/// let value: Vec<u8> = Owned::new(bytes, true).decode()?;
/// assert_eq!(value.as_ptr(), address);
/// # Ok::<(), brigade_codec::CodecError>(())
/// ```
#[derive(Debug)]
pub struct Owned {
    bytes: Vec<u8>,
    /// The encoded value begins with the number of the bytes.
    is_counted: bool,
}

impl Owned {
    /// Takes bytes. If they `are_counted`, the encoding begins with their number, which is not one
    /// of them.
    pub fn new(bytes: Vec<u8>, is_counted: bool) -> Self {
        Self { bytes, is_counted }
    }

    /// Decodes the value, whose memory is that of the bytes if it is a `Vec<u8>`, a `String` or an
    /// [`Encoded`].
    ///
    /// # Errors
    /// As [`decode`](crate::decode).
    pub fn decode<R: DeserializeOwned + 'static>(self) -> Result<R, CodecError> {
        let Self { bytes, is_counted } = self;
        if is_counted == (TypeId::of::<R>() == TypeId::of::<Encoded>()) {
            return Self { bytes, is_counted }.decode_again();
        }
        from_bytes(bytes).or_else(|bytes| Self { bytes, is_counted }.decode_again())
    }

    /// Decodes a copy of the value.
    ///
    /// # Errors
    /// As [`decode`](crate::decode).
    pub fn decode_again<R: DeserializeOwned + 'static>(&self) -> Result<R, CodecError> {
        match contiguous_parts(&self.bytes).filter(|_| self.is_counted) {
            None => decode(&self.bytes),
            Some((prefix, bytes)) => decode(&[prefix.as_slice(), bytes].concat()),
        }
    }

    /// Returns `true` if the value, which is a `Result`, is an `Err`.
    pub fn is_err(&self) -> bool {
        !self.is_counted && is_err(&self.bytes)
    }

    /// Returns the number of bytes.
    #[expect(clippy::len_without_is_empty, reason = "it is large")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode<R: DeserializeOwned + 'static>(
        bytes: &[u8],
        is_counted: bool,
    ) -> Result<R, CodecError> {
        let value = Owned::new(bytes.to_vec(), is_counted);
        let again = value.decode_again::<R>();
        let decoded = value.decode::<R>();
        assert_eq!(again.is_ok(), decoded.is_ok());
        decoded
    }

    #[test]
    fn counted_bytes_are_a_vector_a_text_or_encoded() {
        assert_eq!(decode::<Vec<u8>>(b"text", true).unwrap(), b"text");
        assert_eq!(decode::<String>(b"text", true).unwrap(), "text");
        assert_eq!(decode::<Encoded>(b"text", true).unwrap().as_slice(), b"\x04text");
        assert!(decode::<String>(b"\xff", true).is_err());
    }

    #[test]
    fn bytes_that_are_not_counted_are_the_encoded_value() {
        assert_eq!(decode::<(u8, String)>(b"\x07\x02ab", false).unwrap(), (7, "ab".to_owned()));
        assert_eq!(decode::<Encoded>(b"\x07", false).unwrap().as_slice(), [7]);
        assert!(decode::<(u8, String)>(b"\x07\x02a", false).is_err());
    }

    #[test]
    fn the_memory_of_bytes_becomes_that_of_the_vector() {
        let bytes = vec![7; 100];
        let address = bytes.as_ptr();
        let decoded: Vec<u8> = Owned::new(bytes, true).decode().unwrap();
        assert_eq!(decoded.as_ptr(), address);
    }
}
