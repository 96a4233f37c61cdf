//! Measures the memory that this process uses, and the address space that it has left.

use std::io;

use rustix::process::{Resource, getrlimit};

use crate::arena::mapping::page_size;

/// Returns the resident bytes of this process, from `/proc/self/statm`.
///
/// # Errors
/// If the file cannot be read or has another format than the kernel documents (proc(5)).
pub fn resident() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    bytes_of_field(&text, 1).ok_or_else(|| io::Error::other("malformed /proc/self/statm"))
}

/// Returns the bytes of address space that this process may still take under its limit (`ulimit
/// -v`, `RLIMIT_AS`); `None` if it has no limit. If `/proc` does not show the usage, this is the
/// whole limit.
pub fn address_space_left() -> Option<u64> {
    let limit = getrlimit(Resource::As).current?;
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    Some(limit.saturating_sub(bytes_of_field(&text, 0).unwrap_or(0)))
}

/// Returns an error if fewer than `bytes` bytes of address space are left. It is better not to use
/// up the rest, because a program ends when it is refused a few bytes.
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
    fn touched_memory_is_counted() {
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
