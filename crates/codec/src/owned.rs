//! Encoded bytes whose memory can become that of the value.

use std::any::type_name;
use std::borrow::Cow;

use brigade_sys::numbers::Numbers;
use serde::de::DeserializeOwned;

use crate::codec::{decode, is_err};
use crate::contiguous::{Form, from_numbers, parts_of_numbers};
use crate::error::CodecError;
use crate::parts::{decode_in_parts, join};

/// The encoding of a value: of a vector of numbers or a `String` their memory, without how many
/// they are.
///
/// ```
/// use brigade_codec::Owned;
/// use brigade_sys::numbers::Numbers;
///
/// let numbers = vec![0.5_f32; 100];
/// let address = numbers.as_ptr();
/// let value: Vec<f32> = Owned::new(Numbers::of(numbers), true).decode()?;
/// assert_eq!(value.as_ptr(), address);
/// # Ok::<(), brigade_codec::CodecError>(())
/// ```
#[derive(Debug)]
pub struct Owned {
    numbers: Numbers,
    /// The encoded value begins with how many numbers these are.
    is_counted: bool,
    /// If there are some, the value was encoded without them.
    parts: Vec<Numbers>,
}

impl Owned {
    /// Takes numbers. If they `are_counted`, the encoding begins with how many they are, which is
    /// not one of them; otherwise it is their bytes.
    pub fn new(numbers: Numbers, is_counted: bool) -> Self {
        Self { numbers, is_counted, parts: Vec::new() }
    }

    /// Takes the encoding of a value [in parts](crate::parts), and at least one part.
    pub fn in_parts(encoded: Numbers, parts: Vec<Numbers>) -> Self {
        Self { numbers: encoded, is_counted: false, parts }
    }

    /// Decodes the value, whose memory is that of the numbers if it is a vector of numbers of this
    /// size, a `String` or an [`Encoded`](crate::Encoded).
    ///
    /// # Errors
    /// As [`decode`](crate::decode).
    pub fn decode<R: DeserializeOwned + 'static>(self) -> Result<R, CodecError> {
        let Self { numbers, is_counted, parts } = self;
        if !parts.is_empty() {
            return decode_in_parts(numbers.as_bytes(), parts);
        }
        let numbers = if is_counted == (Form::of::<R>() == Form::Encoded) {
            numbers
        } else {
            match from_numbers(numbers) {
                Ok(value) => return Ok(value),
                Err(numbers) => numbers,
            }
        };
        Self::new(numbers, is_counted).decode_again()
    }

    /// Decodes a copy of the value.
    ///
    /// # Errors
    /// As [`decode`](crate::decode).
    pub fn decode_again<R: DeserializeOwned + 'static>(&self) -> Result<R, CodecError> {
        decode(&self.encoded(type_name::<R>())?)
    }

    /// Returns the whole encoding of the value, which is of this type.
    fn encoded(&self, type_name: &'static str) -> Result<Cow<'_, [u8]>, CodecError> {
        let bytes = self.numbers.as_bytes();
        if !self.parts.is_empty() {
            return join(bytes, &self.parts, type_name).map(Cow::Owned);
        }
        if !self.is_counted {
            return Ok(Cow::Borrowed(bytes));
        }
        let (prefix, bytes) = parts_of_numbers(&self.numbers);
        Ok(Cow::Owned([prefix.as_slice(), bytes].concat()))
    }

    /// Returns `true` if the value, which is a `Result`, is an `Err`.
    pub fn is_err(&self) -> bool {
        !self.is_counted && is_err(self.numbers.as_bytes())
    }

    /// Returns the number of bytes.
    #[expect(clippy::len_without_is_empty, reason = "it is large")]
    pub fn len(&self) -> usize {
        let parts: usize = self.parts.iter().map(|part| part.as_bytes().len()).sum();
        self.numbers.as_bytes().len() + parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Encoded;
    use crate::packed::Packed;
    use crate::parts::{Addresses, encode_in_parts};

    fn decode_numbers<R: DeserializeOwned + 'static>(
        numbers: Numbers,
        is_counted: bool,
    ) -> Result<R, CodecError> {
        let value = Owned::new(numbers, is_counted);
        let again = value.decode_again::<R>();
        let decoded = value.decode::<R>();
        assert_eq!(again.is_ok(), decoded.is_ok());
        decoded
    }

    fn decode<R: DeserializeOwned + 'static>(
        bytes: &[u8],
        is_counted: bool,
    ) -> Result<R, CodecError> {
        decode_numbers(Numbers::of(bytes.to_vec()), is_counted)
    }

    #[test]
    fn counted_bytes_are_a_vector_a_text_or_encoded() {
        assert_eq!(decode::<Vec<u8>>(b"text", true).unwrap(), b"text");
        assert_eq!(decode::<Vec<i8>>(b"\xff", true).unwrap(), [-1]);
        assert_eq!(decode::<String>(b"text", true).unwrap(), "text");
        assert_eq!(decode::<Encoded>(b"text", true).unwrap().as_slice(), b"\x04text");
        assert!(decode::<String>(b"\xff", true).is_err());
    }

    #[test]
    fn counted_numbers_are_vectors_of_their_size_or_encoded() {
        let numbers = || Numbers::of(vec![1.0_f32, 0.0]);
        assert_eq!(decode_numbers::<Vec<f32>>(numbers(), true).unwrap(), [1.0, 0.0]);
        assert_eq!(decode_numbers::<Vec<u32>>(numbers(), true).unwrap(), [0x3f80_0000, 0]);
        let encoded = decode_numbers::<Encoded>(numbers(), true).unwrap();
        assert_eq!(crate::decode::<Vec<f32>>(encoded.as_slice()).unwrap(), [1.0, 0.0]);
        // As a liar may claim.
        assert!(decode_numbers::<Vec<u8>>(numbers(), true).is_err());
        assert!(decode_numbers::<Vec<u64>>(numbers(), true).is_err());
        assert!(decode_numbers::<String>(numbers(), true).is_err());
        assert!(decode_numbers::<(String, Vec<f32>)>(numbers(), true).is_err());
    }

    #[test]
    fn a_value_in_parts_is_decoded_with_them() {
        let value = (Ok::<_, String>(Packed::new(vec![1_u16, 2])), 3_u8);
        let (mut encoded, mut parts) = (Vec::new(), Vec::new());
        encode_in_parts(&value, &mut encoded, 200, (100, Addresses::Hidden), Some(&mut parts))
            .unwrap();
        let value_in_parts =
            Owned::in_parts(Numbers::of(encoded), vec![Numbers::of(vec![1_u16, 2])]);
        assert_eq!(value_in_parts.len(), 1 + 17 + 1 + 48 + 4);
        assert_eq!(value_in_parts.decode_again::<(Result<_, String>, u8)>().unwrap(), value);
        assert_eq!(value_in_parts.decode::<(Result<_, String>, u8)>().unwrap(), value);
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
        let decoded: Vec<u8> = Owned::new(Numbers::of(bytes), true).decode().unwrap();
        assert_eq!(decoded.as_ptr(), address);
    }
}
