//! How much memory this process uses, and how much address space it has left.

use std::io;

use rustix::process::{Resource, getrlimit};

use crate::arena::mapping::page_size;

/// Bytes that are resident now, as `/proc/self/statm` tells.
///
/// # Errors
/// When the file cannot be read or is not as the kernel documents it (proc(5)).
pub fn resident() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    bytes_of_field(&text, 1)
        .ok_or_else(|| io::Error::other("/proc/self/statm has no second number"))
}

/// Bytes of address space that this process may still take under its limit (`ulimit -v`, `RLIMIT_AS`); `None` when it has no
/// limit. Where `/proc` does not tell how much is in use, it is the whole limit.
pub fn address_space_left() -> Option<u64> {
    let limit = getrlimit(Resource::As).current?;
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    Some(limit.saturating_sub(bytes_of_field(&text, 0).unwrap_or(0)))
}

/// Refuses what needs `bytes` of address space when that is more than is left: the last of it is better not given away,
/// because a program ends when it is refused a few bytes.
///
/// # Errors
/// `OutOfMemory`.
pub fn require_address_space(bytes: u64) -> io::Result<()> {
    match address_space_left() {
        Some(left) if left < bytes => Err(io::Error::new(
            io::ErrorKind::OutOfMemory,
            "too little address space is left (ulimit -v, RLIMIT_AS)",
        )),
        _ => Ok(()),
    }
}

fn bytes_of_field(statm: &str, index: usize) -> Option<u64> {
    let pages = statm.split_ascii_whitespace().nth(index)?.parse::<u64>().ok()?;
    Some(pages.saturating_mul(page_size() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_touched_is_counted() {
        let before = resident().unwrap();
        let touched = std::hint::black_box(vec![1_u8; 32 << 20]);
        assert!(resident().unwrap() >= before + (24 << 20));
        drop(touched);
    }

    #[test]
    fn fields_are_pages() {
        let page = page_size() as u64;
        assert_eq!(bytes_of_field("12 3 1", 0), Some(12 * page));
        assert_eq!(bytes_of_field("12 3 1", 1), Some(3 * page));
        assert_eq!(bytes_of_field("", 0), None);
    }
}
