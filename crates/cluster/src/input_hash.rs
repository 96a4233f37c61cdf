//! A hash of inputs, which outcomes of named batches carry.

/// Returns a hash of an encoded input. It is stable: outcomes outlive programs.
///
/// It detects mistakes, such as a batch that is run again with another list, and not forgeries.
pub(crate) fn input_hash(encoded: &[u8]) -> u64 {
    // FNV-1a over words instead of bytes, so that large inputs cost little, with the length and a
    // final mix, so that the high bits of the last words count.
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ encoded.len() as u64;
    for chunk in encoded.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(PRIME);
        hash ^= hash >> 29;
    }
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_the_same_in_every_release() {
        assert_eq!(input_hash(b""), 0xcbf2_9ce4_4fd0_bfc1);
        assert_ne!(input_hash(b"a"), input_hash(b"a\0"));
        assert_ne!(input_hash(b"12345678a"), input_hash(b"12345678b"));
    }
}
