//! The texts of errors: those that a type's own `Serialize` or `Deserialize` has made, and what to
//! do about those of postcard.
//!
//! Postcard's errors have no room for the text of a type. So a value that has failed is encoded or
//! decoded once more, to nothing, with an error that keeps it. Values that do not fail pay nothing
//! for that.

mod decoding;
mod encoding;

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Serialize, de, ser};

/// Returns the error of a value that postcard could not encode in `limit` bytes.
#[cold]
pub(crate) fn of_encoding<T: Serialize>(
    value: &T,
    error: postcard::Error,
    limit: usize,
) -> Box<dyn std::error::Error + Send + Sync> {
    if error != postcard::Error::SerdeSerCustom {
        return advice(error);
    }
    let mut room = limit;
    encoding::reason(value, &mut room).map_or_else(|| error.into(), Into::into)
}

/// Returns the error of bytes from which postcard could not decode a `T`.
#[cold]
pub(crate) fn of_decoding<T: DeserializeOwned>(
    bytes: &[u8],
    error: postcard::Error,
) -> Box<dyn std::error::Error + Send + Sync> {
    if error != postcard::Error::SerdeDeCustom {
        return advice(error);
    }
    decoding::reason::<T>(bytes).map_or_else(|| error.into(), Into::into)
}

/// Returns an error of postcard in words that say which attributes of serde lead to it.
fn advice(error: postcard::Error) -> Box<dyn std::error::Error + Send + Sync> {
    use postcard::Error;
    let names = "its encoding has no names of fields and types, which `untagged`, `tag`, `flatten` \
                 and types such as `serde_json::Value` need: use none of them, or send it as text";
    match error {
        Error::WontImplement | Error::SerializeSeqLengthUnknown => names.into(),
        Error::DeserializeUnexpectedEnd
        | Error::DeserializeBadBool
        | Error::DeserializeBadOption
        | Error::DeserializeBadEnum
        | Error::DeserializeBadUtf8 => format!(
            "the bytes have other fields than the type ({error}): each side needs the same \
             type, without `skip_serializing_if`"
        )
        .into(),
        error => error.into(),
    }
}

/// An error that keeps its text.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct TextError(String);

impl ser::Error for TextError {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self(text.to_string())
    }
}

impl de::Error for TextError {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self(text.to_string())
    }
}

impl From<postcard::Error> for TextError {
    fn from(error: postcard::Error) -> Self {
        Self(error.to_string())
    }
}
