//! A hash for names that outlive a process: FNV-1a.

/// Returns a hash of bytes that is the same in every build and release: FNV-1a with 64 bits, see
/// <http://www.isthe.com/chongo/tech/comp/fnv/>.
///
/// It tells names apart, and is no protection against forgeries. Put the length of each part in
/// front of it where parts of different lengths could be mistaken for each other.
///
/// ```
/// assert_eq!(brigade_base::stable_hash(*b"a"), 0xaf63_dc4c_8601_ec8c);
/// ```
pub fn stable_hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::stable_hash;

    /// From the reference vectors of FNV.
    #[test]
    fn a_hash_is_the_same_in_every_release() {
        assert_eq!(stable_hash(*b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(stable_hash(*b"foobar"), 0x8594_4171_f739_67e8);
    }
}
