//! Copies bytes that another process may change meanwhile, and large numbers of bytes.

#[cfg(target_arch = "x86_64")]
use std::arch::asm;
use std::ptr;

/// From this size on, bytes are copied with `rep movsb`, which writes whole cache lines without
/// reading them first. The loop of `memcpy` does read them as soon as they exceed the second level
/// of the cache. Below that size, both take as long.
const LARGE: usize = 1 << 20;

/// Copies bytes, as [`ptr::copy_nonoverlapping`] does.
///
/// # Safety
/// Like `ptr::copy_nonoverlapping`.
#[inline]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    if length >= LARGE && is_fast() {
        // SAFETY: the caller guarantees even that nobody changes the bytes.
        unsafe { copy_unstable(from, to, length) }
    } else {
        // SAFETY: the caller guarantees what is needed.
        unsafe { ptr::copy_nonoverlapping(from, to, length) }
    }
}

/// Returns `true` if the processor says that it is fast at `rep movsb`.
#[cfg(target_arch = "x86_64")]
fn is_fast() -> bool {
    std::arch::is_x86_feature_detected!("ermsb")
}

#[cfg(not(target_arch = "x86_64"))]
fn is_fast() -> bool {
    false
}

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

/// Like the function above, for processors without that instruction.
///
/// # Safety
/// Like the function above.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn copy_unstable(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the same conditions.
    unsafe { copy_words(from, to, length) }
}

/// Copies bytes that may change at any time, by volatile reads, each of which happens exactly once:
/// of whole words as far as the source has any.
///
/// # Safety
/// Like `copy_unstable`.
#[cfg(any(test, not(target_arch = "x86_64")))]
unsafe fn copy_words(from: *const u8, to: *mut u8, length: usize) {
    const WORD: usize = size_of::<u64>();
    let bytes = |range: std::ops::Range<usize>| {
        for index in range {
            // SAFETY: both addresses lie in the ranges that the caller vouches for.
            unsafe { to.add(index).write(from.add(index).read_volatile()) };
        }
    };
    let begin = from.align_offset(WORD).min(length);
    let end = begin + (length - begin) / WORD * WORD;
    bytes(0..begin);
    for index in (begin..end).step_by(WORD) {
        #[expect(clippy::cast_ptr_alignment, reason = "the source is aligned from `begin` on")]
        // SAFETY: as above, for a whole word.
        unsafe {
            let word = from.add(index).cast::<u64>().read_volatile();
            to.add(index).cast::<u64>().write_unaligned(word);
        }
    }
    bytes(end..length);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_of_any_length_are_copied_and_no_others() {
        let from = brigade_testkit_core::payload(0, 2 * LARGE);
        for (at, length) in [(0, 0), (1, 1), (3, LARGE - 1), (0, LARGE), (7, LARGE + 1)] {
            let mut to = vec![255; length + 2];
            let part = &from[at..at + length];
            // SAFETY: both have `length` bytes, and are different vectors.
            unsafe { copy(part.as_ptr(), to[1..].as_mut_ptr(), length) };
            assert_eq!((to[0], &to[1..=length], to[length + 1]), (255, part, 255));
        }
    }

    #[test]
    fn words_at_any_alignment_are_copied_and_nothing_else() {
        let from: Vec<u8> = (0..100).collect();
        for (at, room, length) in (0..9).flat_map(|at| {
            (0..9).flat_map(move |room| (0..40).map(move |length| (at, room, length)))
        }) {
            let mut to = vec![255; room + length + 9];
            let part = &from[at..at + length];
            // SAFETY: both have `length` bytes, and are different vectors.
            unsafe { copy_words(part.as_ptr(), to[room..].as_mut_ptr(), length) };
            assert_eq!(&to[room..room + length], part);
            let others = to[..room].iter().chain(&to[room + length..]);
            assert!(others.into_iter().all(|byte| *byte == 255), "{at} {room} {length}");
        }
    }
}
