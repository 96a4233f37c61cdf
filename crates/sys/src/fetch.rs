//! Fetches cache lines before they are needed.

use std::sync::atomic::AtomicU64;

/// Makes the processor fetch the cache line of `word` for writing, and goes on meanwhile.
///
/// A plain load would fetch a copy for reading, and the write would then wait for the line once
/// more.
#[inline]
pub fn fetch_for_writing(word: &AtomicU64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it is a hint that changes no register, no flag and no byte. Processors that do not
    // know it ignore it.
    unsafe {
        std::arch::asm!(
            "prefetchw [{}]",
            in(reg) std::ptr::from_ref(word),
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!(
            "prfm pstl1keep, [{}]",
            in(reg) std::ptr::from_ref(word),
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = word;
}
