//! Encoded bytes, which need no allocation if they are few.

use std::ops::Deref;

use brigade_sys::thin_bytes::ThinBytes;

/// Number of bytes that need no allocation. A numeral has at most ten, and a larger value would
/// make each task larger.
const FEW: usize = 14;

/// Encoded bytes.
#[derive(Debug)]
pub enum Bytes {
    /// Few bytes.
    Few(Few),
    /// Bytes in memory of their size.
    Copied(ThinBytes),
    /// Boxed because each task has room for bytes, but a vector of them is rare and large.
    Vector(Box<Vec<u8>>),
}

/// Bytes without an allocation; see [`Bytes`].
#[derive(Debug, Clone, Copy)]
pub struct Few {
    length: u8,
    bytes: [u8; FEW],
}

impl Bytes {
    /// Copies bytes.
    #[inline]
    pub fn copy(from: &[u8]) -> Self {
        match u8::try_from(from.len()) {
            // Bytes that are written one by one must not be read as a word right after that.
            Ok(0) => Self::Few(Few::NONE),
            Ok(length) if from.len() <= FEW => {
                let mut bytes = [0; FEW];
                bytes[..from.len()].copy_from_slice(from);
                Self::Few(Few { length, bytes })
            }
            _ => Self::Copied(ThinBytes::copy(from)),
        }
    }

    /// Returns the number of bytes of memory that are freed with these, at most.
    pub fn size(&self) -> usize {
        match self {
            Self::Few(_) => 0,
            Self::Copied(bytes) => bytes.len(),
            Self::Vector(bytes) => bytes.capacity(),
        }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.len() <= FEW { Self::copy(&bytes) } else { Self::Vector(Box::new(bytes)) }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Few(few) => few,
            Self::Copied(bytes) => bytes,
            Self::Vector(bytes) => bytes,
        }
    }
}

impl Few {
    /// No bytes.
    pub const NONE: Self = Self { length: 0, bytes: [0; FEW] };
}

impl Deref for Few {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length).min(FEW)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_bytes_is_kept() {
        let all: Vec<u8> = (0..=2 * 15).collect();
        for length in 0..all.len() {
            let bytes = &all[..length];
            assert_eq!(&*Bytes::copy(bytes), bytes);
            assert_eq!(&*Bytes::from(bytes.to_vec()), bytes);
            assert_eq!(Bytes::copy(bytes).size() > 0, length > FEW);
        }
        assert!(Few::NONE.is_empty());
    }

    #[test]
    fn bytes_take_two_words() {
        assert_eq!(size_of::<Bytes>(), 2 * size_of::<usize>());
    }
}
