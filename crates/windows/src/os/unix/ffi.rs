//! `std::os::unix::ffi`: strings of the system are bytes in the encoding of the standard library.

use std::ffi::{OsStr, OsString};

pub trait OsStrExt {
    fn from_bytes(bytes: &[u8]) -> &Self;
    fn as_bytes(&self) -> &[u8];
}

impl OsStrExt for OsStr {
    /// Returns the text up to the first byte that is no UTF-8.
    fn from_bytes(bytes: &[u8]) -> &Self {
        Self::new(bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid()))
    }

    fn as_bytes(&self) -> &[u8] {
        self.as_encoded_bytes()
    }
}

pub trait OsStringExt {
    fn from_vec(bytes: Vec<u8>) -> Self;
    fn into_vec(self) -> Vec<u8>;
}

impl OsStringExt for OsString {
    fn from_vec(bytes: Vec<u8>) -> Self {
        String::from_utf8_lossy(&bytes).into_owned().into()
    }

    fn into_vec(self) -> Vec<u8> {
        self.into_encoded_bytes()
    }
}
