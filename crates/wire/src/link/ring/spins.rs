//! The decision whether a side spins before it sleeps: spin-then-park (Karlin and others 1991),
//! with truncated binary exponential backoff of the spins.

use std::sync::atomic::{AtomicU32, Ordering};

/// Leaves out spins after others that were in vain: fewer and fewer spin, until one finds
/// something.
///
/// A spin is in vain if the other side sends nothing for long, or if it waits for the very core
/// that the spin takes, because other programs have the rest. Threads may share it: what they
/// decide on at the same time may be a little off.
#[derive(Debug, Default)]
pub struct Spins {
    /// Number of spins in succession that were in vain; less after one that was not.
    vain: AtomicU32,
    /// Number of times from now on to sleep at once.
    skip: AtomicU32,
}

/// The largest number of times in succession to sleep at once, as a power of two.
const MAX_SKIPPED: u32 = 6;

impl Spins {
    /// Returns `false` if this spin is left out.
    #[inline]
    pub fn begin(&self) -> bool {
        let skip = self.skip.load(Ordering::Relaxed);
        if skip > 0 {
            self.skip.store(skip - 1, Ordering::Relaxed);
        }
        skip == 0
    }

    /// Records the end of a spin.
    #[inline]
    pub fn end(&self, found: bool) {
        let vain = self.vain.load(Ordering::Relaxed);
        if !found {
            // A single one may be due to another process on the core.
            self.skip.store((1 << vain) - 1, Ordering::Relaxed);
            self.vain.store((vain + 1).min(MAX_SKIPPED), Ordering::Relaxed);
        } else if vain > 0 {
            // Where cores are scarce, some find something, and the next ones do not.
            self.vain.store(vain / 2, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of spins that are left out after one that has ended in this way.
    fn left_out_after(spins: &Spins, found: bool) -> usize {
        spins.end(found);
        (0..1_000).take_while(|_| !spins.begin()).count()
    }

    #[test]
    fn spins_in_vain_become_rare_until_one_is_not() {
        let spins = Spins::default();
        assert!(spins.begin());
        let left_out = [false; 9].map(|found| left_out_after(&spins, found));
        assert_eq!(left_out, [0, 1, 3, 7, 15, 31, 63, 63, 63]);
        assert_eq!(left_out_after(&spins, true), 0);
        assert_eq!(left_out_after(&spins, false), 7);
        let left_out = [true, true, true, false, false].map(|found| left_out_after(&spins, found));
        assert_eq!(left_out, [0, 0, 0, 0, 1]);
    }
}
