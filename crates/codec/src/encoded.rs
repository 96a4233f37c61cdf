//! Values that are encoded already.

use std::fmt;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

/// The encoding of an argument or a result whose type is known elsewhere.
///
/// As a whole argument or result it is encoded as its own bytes, so a program can pass on a task
/// whose types it does not know. Anywhere else, for example in a tuple, it cannot be encoded.
///
/// ```
/// use brigade_codec::Encoded;
///
/// let mut bytes = Vec::new();
/// brigade_codec::encode(&7_u8, &mut bytes, 100)?;
/// let encoded: Encoded = brigade_codec::decode(&bytes)?;
/// assert_eq!(encoded.as_slice(), [7]);
/// # Ok::<(), brigade_codec::CodecError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Encoded(Vec<u8>);

impl Encoded {
    /// Wraps encoded bytes.
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// Returns the bytes in their memory.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl fmt::Debug for Encoded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The bytes belong to the user and may be many.
        write!(out, "Encoded({} bytes)", self.0.len())
    }
}

/// An [`Encoded`] that is not a whole argument or result.
#[derive(Debug, thiserror::Error)]
#[error(
    "an `Encoded` is the whole argument or result of a task, and cannot be a part of another value"
)]
struct Misplaced;

/// Fails: the codec encodes whole values without it.
impl Serialize for Encoded {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom(Misplaced))
    }
}

/// Fails: the codec decodes whole values without it.
impl<'de> Deserialize<'de> for Encoded {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom(Misplaced))
    }
}
