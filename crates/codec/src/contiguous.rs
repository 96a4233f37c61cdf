//! Types whose encoding ends with their memory: `Vec<u8>`, `String` and [`Encoded`].

use std::any::Any;

use crate::encoded::Encoded;

/// The encoded length before the bytes of a `Vec<u8>` or `String`; empty before those of an
/// [`Encoded`].
#[derive(Debug, Clone, Copy)]
pub struct Prefix {
    bytes: [u8; 10],
    length: usize,
}

impl Prefix {
    const NONE: Self = Self { bytes: [0; 10], length: 0 };

    fn of(mut number: usize) -> Self {
        let mut prefix = Self::NONE;
        loop {
            let more = if number >= 0x80 { 0x80 } else { 0 };
            prefix.bytes[prefix.length] = low_seven_bits(number) | more;
            prefix.length += 1;
            number >>= 7;
            if number == 0 {
                return prefix;
            }
        }
    }

    /// Returns the encoded length.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Returns the encoded form of a `Vec<u8>`, `String` or [`Encoded`] in two parts and without a
/// copy; `None` for other types.
pub fn contiguous_parts<T: 'static>(value: &T) -> Option<(Prefix, &[u8])> {
    let value: &dyn Any = value;
    if let Some(encoded) = value.downcast_ref::<Encoded>() {
        return Some((Prefix::NONE, encoded.as_slice()));
    }
    let bytes = value.downcast_ref::<Vec<u8>>().map(Vec::as_slice);
    let bytes = bytes.or_else(|| value.downcast_ref::<String>().map(String::as_bytes))?;
    Some((Prefix::of(bytes.len()), bytes))
}

/// Returns the memory of a `Vec<u8>`, `String` or [`Encoded`]; `None` for other types.
pub fn into_bytes<T: 'static>(value: T) -> Option<Vec<u8>> {
    let mut value = Some(value);
    let value: &mut dyn Any = &mut value;
    if let Some(bytes) = value.downcast_mut::<Option<Vec<u8>>>() {
        return bytes.take();
    }
    if let Some(encoded) = value.downcast_mut::<Option<Encoded>>() {
        return encoded.take().map(Encoded::into_bytes);
    }
    value.downcast_mut::<Option<String>>()?.take().map(String::into_bytes)
}

/// Returns the `Vec<u8>`, `String` or [`Encoded`] whose memory this is, or the bytes again for
/// other types, and for a `String` that would not be UTF-8.
///
/// # Errors
/// The bytes.
pub fn from_bytes<T: 'static>(bytes: Vec<u8>) -> Result<T, Vec<u8>> {
    let mut value: Option<T> = None;
    let target: &mut dyn Any = &mut value;
    let mut left = Some(bytes);
    if let Some(target) = target.downcast_mut::<Option<Vec<u8>>>() {
        *target = left.take();
    } else if let Some(target) = target.downcast_mut::<Option<String>>() {
        match String::from_utf8(left.take().unwrap_or_default()) {
            Ok(text) => *target = Some(text),
            Err(error) => left = Some(error.into_bytes()),
        }
    } else if let Some(target) = target.downcast_mut::<Option<Encoded>>() {
        *target = left.take().map(Encoded::new);
    }
    value.ok_or_else(|| left.unwrap_or_default())
}

fn low_seven_bits(number: usize) -> u8 {
    number.to_le_bytes()[0] & 0x7f
}

/// Returns `None` for other types, and for bytes that do not match the type: the general decoder
/// then produces the error.
pub(crate) fn decode_contiguous<T: 'static>(
    bytes: &[u8],
    copy: impl FnOnce(&[u8]) -> Vec<u8>,
) -> Option<T> {
    let mut value: Option<T> = None;
    let target: &mut dyn Any = &mut value;
    if let Some(target) = target.downcast_mut::<Option<Vec<u8>>>() {
        *target = Some(copy(strip_length(bytes)?));
    } else if let Some(target) = target.downcast_mut::<Option<String>>() {
        *target = String::from_utf8(copy(strip_length(bytes)?)).ok();
    } else if let Some(target) = target.downcast_mut::<Option<Encoded>>() {
        *target = Some(Encoded::new(copy(bytes)));
    }
    value
}

/// Returns the bytes that follow a length; `None` unless the length matches exactly.
fn strip_length(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = postcard::take_from_bytes::<usize>(bytes).ok()?;
    (length == rest.len()).then_some(rest)
}
