//! Values that fail to be encoded or decoded.

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The fault that occurs in the middle of encoding or decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    /// None; the value arrives.
    NotAtAll,
    /// An error that the library must report.
    Fails,
    /// A panic.
    Panics,
    /// The process exits with code 4.
    Exits,
    /// The process aborts.
    Aborts,
}

/// A value that can be decoded, but not encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct SpoilsEncoding(pub How);

/// A value that can be encoded, but not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SpoilsDecoding(pub How);

/// A task whose argument fails in the host.
pub fn takes_what_spoils_encoding(argument: SpoilsEncoding) -> How {
    argument.0
}

/// A task whose argument fails in the worker.
pub fn takes_what_spoils_decoding(argument: SpoilsDecoding) -> How {
    argument.0
}

/// A task whose value fails in the worker.
pub fn returns_what_spoils_encoding(how: How) -> SpoilsEncoding {
    SpoilsEncoding(how)
}

/// A task whose value fails in the host.
pub fn returns_what_spoils_decoding(how: How) -> SpoilsDecoding {
    SpoilsDecoding(how)
}

impl How {
    fn happens(self) -> Result<(), &'static str> {
        match self {
            Self::NotAtAll => Ok(()),
            Self::Fails => Err("spoiled on purpose"),
            Self::Panics => panic!("spoiled by a panic"),
            Self::Exits => std::process::exit(4),
            Self::Aborts => std::process::abort(),
        }
    }
}

impl Serialize for SpoilsEncoding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.happens().map_err(S::Error::custom)?;
        // As a newtype struct, which the derived `Deserialize` expects.
        serializer.serialize_newtype_struct("SpoilsEncoding", &self.0)
    }
}

impl<'de> Deserialize<'de> for SpoilsDecoding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename = "SpoilsDecoding")]
        struct Carried(How);
        let Carried(how) = Carried::deserialize(deserializer)?;
        how.happens().map_err(D::Error::custom)?;
        Ok(Self(how))
    }
}
