//! Vectors of numbers inside other values, encoded as their memory and not number by number.
//!
//! Name the module where a type has a vector or a boxed slice of integers or floats:
//!
//! ```
//! # use brigade_codec::packed;
//! # use serde::{Deserialize, Serialize};
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! struct Picture {
//!     name: String,
//!     #[serde(with = "packed")] // of Brigade: "brigade::packed"
//!     pixels: Vec<f32>,
//! }
//! # let picture = Picture { name: "x".to_owned(), pixels: vec![0.5, -1.0] };
//! # let mut bytes = Vec::new();
//! # brigade_codec::encode(&picture, &mut bytes, 100)?;
//! # assert_eq!(bytes, b"\x01x\x08\0\0\0\x3f\0\0\x80\xbf");
//! # assert_eq!(brigade_codec::decode::<Picture>(&bytes)?, picture);
//! # Ok::<(), brigade_codec::CodecError>(())
//! ```
//!
//! [`Packed`] is a type around the vector, for tuples, `Result`, and wherever no attribute can be.
//! It also saves a copy of vectors of a MiB and more: a pool copies them from where they are to
//! where the decoded value has them, once, as it does with a vector that is the whole argument or
//! result.
//!
//! Name the module, or the type, on both sides: bytes of a large vector are found by the other side
//! only if its type says so, too.
//!
//! A whole argument or result that is a vector of numbers needs none of this.
//!
//! In formats for humans, such as JSON, the numbers are a list. In others they are bytes, in
//! little-endian.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use brigade_sys::numbers::{Memory, Number, Numbers, SharedNumbers, Unit, as_bytes, copied};
use serde::de::{DeserializeOwned, Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::codec::is_own;
use crate::contiguous::{is_reversed, to_native};
use crate::parts::scope;

/// Implemented for vectors and boxed slices of integers and floats.
pub trait Pack: Memory + Clone + From<Vec<Self::Number>> + AsRef<[Self::Number]> {
    /// The type of the elements.
    type Number: Number + Serialize + DeserializeOwned;
}

impl<N: Number + Serialize + DeserializeOwned> Pack for Vec<N> {
    type Number = N;
}

impl<N: Number + Serialize + DeserializeOwned> Pack for Box<[N]> {
    type Number = N;
}

/// Numbers that are encoded as their memory wherever they are: see the [module](self).
///
/// A clone shares the memory. The first change through a reference copies it then.
///
/// ```
/// use brigade_codec::packed::Packed;
///
/// let value = (1_u8, Ok::<_, String>(Packed::new(vec![0.5_f32, 1.0])));
/// let mut bytes = Vec::new();
/// brigade_codec::encode(&value, &mut bytes, 100)?;
/// let decoded: (u8, Result<Packed<Vec<f32>>, String>) = brigade_codec::decode(&bytes)?;
/// assert_eq!(decoded, value);
/// assert_eq!(decoded.1?.into_inner(), [0.5, 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Packed<P: Pack>(Arc<P>);

impl<P: Pack> Packed<P> {
    /// Takes numbers.
    pub fn new(numbers: P) -> Self {
        Self(Arc::new(numbers))
    }

    /// Returns the numbers, which are copied if a clone shares their memory.
    pub fn into_inner(self) -> P {
        Arc::unwrap_or_clone(self.0)
    }
}

impl<P: Pack> From<P> for Packed<P> {
    fn from(numbers: P) -> Self {
        Self::new(numbers)
    }
}

impl<P: Pack> Deref for Packed<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.0
    }
}

impl<P: Pack> DerefMut for Packed<P> {
    fn deref_mut(&mut self) -> &mut P {
        Arc::make_mut(&mut self.0)
    }
}

impl<P: Pack> Serialize for Packed<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_with(&*self.0, || SharedNumbers::of(Arc::clone(&self.0)), serializer)
    }
}

impl<'de, P: Pack> Deserialize<'de> for Packed<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer).map(Self::new)
    }
}

/// Serializes numbers, for `#[serde(with = "…")]`.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<P: Pack, S: Serializer>(numbers: &P, serializer: S) -> Result<S::Ok, S::Error> {
    // They may be gone when the value is copied: nobody says whose they are.
    let copy = || {
        let copy = Numbers::copy_of(as_bytes(numbers.as_ref()), Unit::of::<P::Number>());
        SharedNumbers::of(Arc::new(copy.unwrap_or_default()))
    };
    serialize_with(numbers, copy, serializer)
}

fn serialize_with<P: Pack, S: Serializer>(
    numbers: &P,
    shared: impl FnOnce() -> SharedNumbers,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let numbers = numbers.as_ref();
    if serializer.is_human_readable() {
        return serializer.collect_seq(numbers);
    }
    let bytes = as_bytes(numbers);
    let unit = Unit::of::<P::Number>();
    if is_reversed(unit) {
        let reversed = Numbers::copy_of(bytes, unit).map(to_native).unwrap_or_default();
        return serializer.serialize_bytes(reversed.as_bytes());
    }
    // Another serializer may not be that of the value.
    let mark = if is_own::<S>() { scope::add(bytes.len(), shared) } else { None };
    serializer.serialize_bytes(mark.as_ref().map_or(bytes, |mark| mark))
}

/// Deserializes numbers, for `#[serde(with = "…")]`. Bytes are copied once.
///
/// # Errors
/// Those of the deserializer, and for bytes that are no whole numbers.
pub fn deserialize<'de, P: Pack, D: Deserializer<'de>>(deserializer: D) -> Result<P, D::Error> {
    if deserializer.is_human_readable() {
        return Vec::deserialize(deserializer).map(P::from);
    }
    deserializer.deserialize_bytes(Bytes(PhantomData)).map(P::from)
}

/// Takes the bytes of numbers.
struct Bytes<N>(PhantomData<N>);

impl<N: Number> Visitor<'_> for Bytes<N> {
    type Value = Vec<N>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the bytes of numbers that have {} each", Unit::of::<N>().get())
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<N>, E> {
        let wrong = |length| E::invalid_length(length, &self);
        let Some(part) = scope::take_part(bytes) else {
            let numbers = copied::<N>(bytes).map(Numbers::of).map(to_native);
            let numbers = numbers.and_then(|numbers| numbers.into_vec().ok());
            return numbers.ok_or_else(|| wrong(bytes.len()));
        };
        // Vectors of other numbers are the same bytes.
        part.into_vec()
            .or_else(|part| copied(part.as_bytes()).ok_or_else(|| wrong(part.as_bytes().len())))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{CodecError, chain, decode, encode};

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Mixed {
        before: u32,
        #[serde(with = "super")]
        bytes: Vec<u8>,
        #[serde(with = "super")]
        floats: Box<[f32]>,
        between: String,
        #[serde(with = "super")]
        words: Vec<i64>,
        list: Vec<Packed<Vec<u16>>>,
    }

    fn mixed() -> impl Strategy<Value = Mixed> {
        let floats = any::<Vec<f32>>().prop_map(Vec::into_boxed_slice);
        let list = any::<Vec<Vec<u16>>>();
        (any::<u32>(), any::<Vec<u8>>(), floats, any::<String>(), any::<Vec<i64>>(), list).prop_map(
            |(before, bytes, floats, between, words, list)| {
                let list = list.into_iter().map(Packed::new).collect();
                Mixed { before, bytes, floats, between, words, list }
            },
        )
    }

    proptest! {
        #[test]
        fn packed_numbers_decode_to_themselves(value in mixed()) {
            let mut bytes = Vec::new();
            encode(&value, &mut bytes, usize::MAX).expect("encodes");
            prop_assert_eq!(decode::<Mixed>(&bytes).expect("decodes"), value.clone());
            for cut in (0..bytes.len()).step_by(13) {
                prop_assert!(decode::<Mixed>(&bytes[..cut]).is_err());
            }
            let mut into = Vec::new();
            let error = encode(&value, &mut into, bytes.len() - 1).expect_err("too large");
            prop_assert!(matches!(error, CodecError::TooLarge { .. }), "{}", error);
        }

        #[test]
        fn packed_numbers_in_json_are_lists(value in mixed()) {
            let text = serde_json::to_string(&value).expect("encodes");
            prop_assert_eq!(serde_json::from_str::<Mixed>(&text).expect("decodes"), value);
        }
    }

    #[test]
    fn packed_bytes_are_encoded_as_a_vector() {
        let (mut packed, mut plain) = (Vec::new(), Vec::new());
        encode(&(7_u8, Packed::new(vec![1_u8, 2, 255])), &mut packed, 100).expect("encodes");
        encode(&(7_u8, vec![1_u8, 2, 255]), &mut plain, 100).expect("encodes");
        assert_eq!(packed, plain);
        assert_eq!(
            serde_json::to_string(&Packed::new(vec![1_i16, -2])).expect("encodes"),
            "[1,-2]"
        );
    }

    #[test]
    fn bytes_that_are_no_whole_numbers_are_an_error() {
        let error = decode::<(u8, Packed<Vec<f32>>)>(&[1, 5, 0, 0, 0, 0, 0]).expect_err("5 bytes");
        assert!(chain(&error).contains("4 each"), "{}", chain(&error));
    }
}
