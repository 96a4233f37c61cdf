//! Aligned memory of the heap.

use std::ops::Range;

use crate::shared::ALIGNMENT;

/// Bytes whose first one is aligned to [`ALIGNMENT`]: a part of a vector that is never resized.
#[derive(Debug)]
pub(crate) struct Heap {
    bytes: Vec<u8>,
    range: Range<usize>,
}

impl Heap {
    pub(crate) fn zeroed(length: usize) -> Self {
        // The system has zeroed memory in large pieces, and gives it pages when they are touched.
        let bytes = vec![0; length + ALIGNMENT - 1];
        let start = start_in(&bytes);
        Self { bytes, range: start..start + length }
    }

    pub(crate) fn copy_of(source: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(source.len() + ALIGNMENT - 1);
        let start = start_in(&bytes);
        bytes.resize(start, 0);
        bytes.extend_from_slice(source);
        Self { bytes, range: start..start + source.len() }
    }

    /// Takes the bytes as they are if they happen to be aligned; otherwise copies them.
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        if start_in(&bytes) == 0 {
            let range = 0..bytes.len();
            Self { bytes, range }
        } else {
            Self::copy_of(&bytes)
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }

    pub(crate) fn as_mut_bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[self.range.clone()]
    }
}

/// Returns the index of the first aligned byte.
fn start_in(bytes: &[u8]) -> usize {
    bytes.as_ptr().addr().wrapping_neg() % ALIGNMENT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_however_it_is_made() {
        for length in [0, 1, 63, 64, 65, 100_000] {
            let bytes: Vec<u8> = (0..=250).cycle().take(length).collect();
            for heap in [Heap::copy_of(&bytes), Heap::of(bytes.clone())] {
                assert_eq!(heap.as_bytes(), bytes);
                assert!(heap.as_bytes().as_ptr().addr().is_multiple_of(ALIGNMENT));
            }
            let mut zeroed = Heap::zeroed(length);
            assert!(zeroed.as_mut_bytes().as_ptr().addr().is_multiple_of(ALIGNMENT));
            assert_eq!(zeroed.as_bytes(), vec![0; length]);
        }
    }
}
