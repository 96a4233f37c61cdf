//! Random bytes from the system.

use std::io;

use rustix::io::retry_on_intr;
use rustix::rand::{GetRandomFlags, getrandom};

/// Returns random bytes that nobody can predict. Waits for the system's generator, which is ready
/// soon after boot.
pub fn bytes<const LENGTH: usize>() -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    let mut filled = 0;
    while filled < LENGTH {
        filled += retry_on_intr(|| getrandom(&mut bytes[filled..], GetRandomFlags::empty()))?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn no_two_calls_return_the_same_bytes() {
        let (first, second): ([u8; 16], [u8; 16]) = (bytes().unwrap(), bytes().unwrap());
        assert_ne!(first, second);
        assert_ne!(first, [0; 16]);
    }

    #[test]
    fn more_bytes_than_one_call_guarantees_are_filled() {
        let bytes: [u8; 4096] = bytes().unwrap();
        assert!(bytes[4000..].iter().any(|byte| *byte != 0));
    }
}
