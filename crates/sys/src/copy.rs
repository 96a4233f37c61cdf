//! Copies bytes that another process may change meanwhile.

#[cfg(target_arch = "x86_64")]
use std::arch::asm;

/// Copies bytes that may change at any time. For the compiler, `ptr::copy` of such bytes would be a
/// data race: it could read them again instead of the copy. A machine instruction reads the memory
/// once, and the compiler cannot look into it.
///
/// # Safety
/// `length` bytes can be read at `from` and written at `to`, and do not overlap. Nobody else
/// reaches those at `to`.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn copy_unstable(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the instruction reads and writes the ranges that the caller vouches for, forwards,
    // because the direction flag is clear at the beginning of every block. It changes the three
    // registers and no flag.
    unsafe {
        asm!(
            "rep movsb",
            inout("rcx") length => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags),
        );
    }
}

/// Like the function above, for processors without that instruction; slower.
///
/// # Safety
/// Like the function above.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn copy_unstable(from: *const u8, to: *mut u8, length: usize) {
    for index in 0..length {
        // SAFETY: both addresses lie in the ranges that the caller vouches for. A volatile read
        // happens exactly once.
        unsafe { to.add(index).write(from.add(index).read_volatile()) };
    }
}
