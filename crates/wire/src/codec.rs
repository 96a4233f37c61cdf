//! Arguments and results as bytes: postcard, with a limit.
//!
//! The format is [postcard's](https://postcard.jamesmunns.com/wire-format). A top-level `Vec<u8>` or `String` is copied
//! in one go instead of byte by byte through serde; the bytes are the same.

use std::any::{Any, type_name};
use std::error::Error;

use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use crate::error::CodecError;

/// Appends the encoded value to `into`, which then is at most `limit` bytes longer.
///
/// # Errors
/// [`CodecError::Encode`] and [`CodecError::TooLarge`]; `into` is as it was.
pub fn encode<T: Serialize + 'static>(
    value: &T,
    into: &mut Vec<u8>,
    limit: usize,
) -> Result<(), CodecError> {
    let before = into.len();
    let end = before.saturating_add(limit);
    let result = match contiguous(value) {
        Some(bytes) => encode_contiguous(bytes, into, end),
        None => postcard::serialize_with_flavor(value, Bounded { into, end }),
    };
    result.map_err(|error| {
        into.truncate(before);
        let type_name = type_name::<T>();
        match error {
            postcard::Error::SerializeBufferFull => CodecError::TooLarge { type_name, limit },
            error => CodecError::Encode { type_name, problem: error.to_string() },
        }
    })
}

/// The value that `encode` turned into `bytes`.
///
/// # Errors
/// [`CodecError::Decode`], also when bytes are left over.
pub fn decode<T: DeserializeOwned + 'static>(bytes: &[u8]) -> Result<T, CodecError> {
    let wrong = |problem: String| CodecError::Decode { type_name: type_name::<T>(), problem };
    if let Some(value) = decode_contiguous(bytes) {
        return Ok(value);
    }
    let (value, rest) =
        postcard::take_from_bytes(bytes).map_err(|error| wrong(error.to_string()))?;
    if rest.is_empty() {
        Ok(value)
    } else {
        Err(wrong(format!("{} bytes are left over", rest.len())))
    }
}

/// An error and all that is behind it, in one line.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

/// A `Vec` that refuses to grow beyond an end.
struct Bounded<'a> {
    into: &'a mut Vec<u8>,
    end: usize,
}

impl Flavor for Bounded<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        if self.into.len() >= self.end {
            return Err(postcard::Error::SerializeBufferFull);
        }
        self.into.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        if bytes.len() > self.end.saturating_sub(self.into.len()) {
            return Err(postcard::Error::SerializeBufferFull);
        }
        self.into.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

fn contiguous<T: 'static>(value: &T) -> Option<&[u8]> {
    let value: &dyn Any = value;
    let bytes = value.downcast_ref::<Vec<u8>>().map(Vec::as_slice);
    bytes.or_else(|| value.downcast_ref::<String>().map(String::as_bytes))
}

fn encode_contiguous(bytes: &[u8], into: &mut Vec<u8>, end: usize) -> postcard::Result<()> {
    let available = end.saturating_sub(into.len());
    if bytes.len() > available {
        return Err(postcard::Error::SerializeBufferFull);
    }
    into.reserve(bytes.len() + LONGEST_LENGTH);
    let mut bounded = Bounded { into, end };
    let mut length = bytes.len();
    while length >= 0x80 {
        bounded.try_push(low_seven_bits(length) | 0x80)?;
        length >>= 7;
    }
    bounded.try_push(low_seven_bits(length))?;
    bounded.try_extend(bytes)
}

/// Bytes of a 64-bit length at seven bits each.
const LONGEST_LENGTH: usize = 10;

fn low_seven_bits(number: usize) -> u8 {
    u8::try_from(number & 0x7f).expect("seven bits")
}

/// `None` for other types, and for bytes that are not of the type: the general way then finds the words for it.
fn decode_contiguous<T: 'static>(bytes: &[u8]) -> Option<T> {
    let mut value: Option<T> = None;
    let place: &mut dyn Any = &mut value;
    if let Some(place) = place.downcast_mut::<Option<Vec<u8>>>() {
        *place = Some(strip_length(bytes)?.to_vec());
    } else if let Some(place) = place.downcast_mut::<Option<String>>() {
        *place = Some(std::str::from_utf8(strip_length(bytes)?).ok()?.to_owned());
    }
    value
}

/// The bytes behind their length, when it is exactly theirs.
fn strip_length(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = postcard::take_from_bytes::<usize>(bytes).ok()?;
    (length == rest.len()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::ser::Error as _;
    use serde::{Deserialize, Serializer};

    use super::*;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    enum Shape {
        Nothing,
        Text(String, Option<i64>),
        Many { values: Vec<(u8, f64)>, name: Box<Shape> },
    }

    fn shapes() -> impl Strategy<Value = Shape> {
        let leaf = prop_oneof![
            Just(Shape::Nothing),
            (any::<String>(), any::<Option<i64>>())
                .prop_map(|(text, number)| Shape::Text(text, number))
        ];
        leaf.prop_recursive(3, 16, 2, |inner| {
            (proptest::collection::vec((any::<u8>(), -1e9..1e9), 0..5), inner)
                .prop_map(|(values, name)| Shape::Many { values, name: Box::new(name) })
        })
    }

    fn encoded<T: Serialize + 'static>(value: &T) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(value, &mut bytes, usize::MAX).expect("encodes");
        bytes
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(value in shapes()) {
            prop_assert_eq!(decode::<Shape>(&encoded(&value)).expect("decodes"), value);
        }

        #[test]
        fn bytes_and_text_are_encoded_as_postcard_does(bytes in any::<Vec<u8>>(), text in any::<String>()) {
            prop_assert_eq!(encoded(&bytes), postcard::to_stdvec(&bytes).expect("encodes"));
            prop_assert_eq!(encoded(&text), postcard::to_stdvec(&text).expect("encodes"));
            prop_assert_eq!(decode::<Vec<u8>>(&encoded(&bytes)).expect("decodes"), bytes);
            prop_assert_eq!(decode::<String>(&encoded(&text)).expect("decodes"), text);
        }

        #[test]
        fn cut_or_random_bytes_are_an_error_or_a_value_and_never_a_panic(
            value in shapes(), cut in any::<prop::sample::Index>(), garbage in any::<Vec<u8>>()
        ) {
            let bytes = encoded(&value);
            let cut = cut.index(bytes.len());
            prop_assert!(decode::<Shape>(&bytes[..cut]).is_err());
            let _ = decode::<Shape>(&garbage);
            let _ = decode::<Vec<u8>>(&garbage);
            let _ = decode::<String>(&garbage);
        }

        #[test]
        fn a_limit_that_is_too_small_leaves_nothing_behind(value in shapes(), cut in any::<prop::sample::Index>()) {
            let length = encoded(&value).len();
            let mut into = vec![1, 2, 3];
            let error = encode(&value, &mut into, cut.index(length)).expect_err("too large");
            prop_assert!(matches!(error, CodecError::TooLarge { .. }), "{}", error);
            prop_assert_eq!(&into, &[1, 2, 3]);
            encode(&value, &mut into, length).expect("fits exactly");
        }
    }

    /// Pretends to be ten thousand million numbers.
    struct Endless;

    impl Serialize for Endless {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq(EndlessNumbers(10_000_000_000))
        }
    }

    #[derive(Clone)]
    struct EndlessNumbers(usize);

    impl Iterator for EndlessNumbers {
        type Item = u8;

        fn next(&mut self) -> Option<u8> {
            self.0 = self.0.checked_sub(1)?;
            Some(0)
        }

        fn size_hint(&self) -> (usize, Option<usize>) {
            (self.0, Some(self.0))
        }
    }

    #[test]
    fn encoding_stops_at_the_limit_and_eats_no_memory() {
        let mut into = Vec::new();
        let error = encode(&Endless, &mut into, 1000).expect_err("too large");
        assert!(matches!(error, CodecError::TooLarge { limit: 1000, .. }));
        assert!(into.capacity() < 10_000);
    }

    struct Refuses;

    impl Serialize for Refuses {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(S::Error::custom("no"))
        }
    }

    #[test]
    fn errors_name_the_type() {
        let error = encode(&Refuses, &mut Vec::new(), 10).expect_err("refuses");
        assert!(error.to_string().contains("Refuses"), "{error}");
        let error = decode::<Shape>(&[9]).expect_err("no such variant");
        assert!(error.to_string().contains("Shape"), "{error}");
        let error = decode::<u8>(&[1, 2]).expect_err("one too many");
        assert!(error.to_string().contains("left over"), "{error}");
    }
}
