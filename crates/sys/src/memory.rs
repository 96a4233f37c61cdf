//! How much memory this process uses.

use std::io;

use crate::arena::mapping::page_size;

/// Bytes that are resident now, as `/proc/self/statm` tells.
///
/// # Errors
/// When the file cannot be read or is not as the kernel documents it (proc(5)).
pub fn resident() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages = text.split_ascii_whitespace().nth(1).and_then(|field| field.parse::<u64>().ok());
    let pages = pages.ok_or_else(|| io::Error::other("/proc/self/statm has no second number"))?;
    Ok(pages.saturating_mul(page_size() as u64))
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
}
