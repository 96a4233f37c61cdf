//! A function as its distance from the start of the program.

use super::entry::EntryPoint;
use super::identity::SameBuild;
use super::program::program;
use crate::error::ExecutableError;
use std::fmt;
use std::mem;

/// Offset of an entry point in the program, the same in every process that runs the same program.
///
/// The number may be sent to such a process, and to no other: a number from another build can point
/// to the middle of any function. So calling it takes a proof that the
/// [`BuildIdentity`](super::BuildIdentity) of the sender was compared. And it carries a tag that
/// [`of`](Self::of) adds, so that a number that is made up, computed from an address, or damaged on
/// its way is refused. The tag is no secret: it protects from mistakes, not from code that computes
/// tags on purpose (`SECURITY.md`, *Not defended*).
///
/// ```compile_fail
/// use brigade_sys::executable::FunctionOffset;
///
/// let entry = FunctionOffset::from_raw(0x1000).resolve();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FunctionOffset(u64);

/// The low bits, which are the offset: executables of up to a terabyte. The others are the tag.
const OFFSET_BITS: u32 = 40;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;

impl FunctionOffset {
    /// Returns the offset of an entry point of the main program.
    #[inline]
    pub fn of(entry: EntryPoint) -> Result<Self, ExecutableError> {
        let address = entry as usize;
        let program = program();
        if !program.is_code(address) {
            return Err(ExecutableError::OutsideProgram { address });
        }
        let offset = address.wrapping_sub(program.base) as u64;
        if offset > OFFSET_MASK {
            return Err(ExecutableError::OutsideProgram { address });
        }
        Ok(Self(offset | tag(offset)))
    }

    /// Returns the entry point that was passed to [`of`](Self::of), in this process or in another
    /// one of the same program.
    pub fn resolve(self, _: SameBuild) -> Result<EntryPoint, ExecutableError> {
        let unknown = ExecutableError::UnknownOffset { offset: self.0 };
        let offset = self.0 & OFFSET_MASK;
        let (Ok(distance), true) = (usize::try_from(offset), self.0 == offset | tag(offset)) else {
            return Err(unknown);
        };
        let address = program().base.wrapping_add(distance);
        if !program().is_code(address) {
            return Err(unknown);
        }
        // SAFETY: the address lies in the program's own code, so it is not null. The tag says that
        // `of` made the number, in a process of the same program, of which the caller has the
        // proof, and which had an `EntryPoint` there. Another number has the right tag once in 16
        // million, or if somebody computes tags to forge offsets, which nobody may do.
        Ok(unsafe { mem::transmute::<usize, EntryPoint>(address) })
    }

    /// Wraps a number that [`raw`](Self::raw) returned in a process of the same program.
    /// [`resolve`](Self::resolve) refuses any other one by its tag.
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// Returns the offset as a number to send.
    pub const fn raw(self) -> u64 {
        self.0
    }
}

/// Returns the tag of an offset, in the bits above it: the finalizer of `SplitMix64`.
const fn tag(offset: u64) -> u64 {
    let mut mixed = offset ^ 0x6272_6967_6164_6521;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed & !OFFSET_MASK
}

impl fmt::Display for FunctionOffset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:#x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BuildIdentity, Invocation, build_identity};
    use super::*;
    use crate::error::EntryError;

    #[expect(clippy::unnecessary_wraps, reason = "an entry point has this type")]
    fn answer(invocation: &mut Invocation<'_>) -> Result<(), EntryError> {
        invocation.result.push(42);
        Ok(())
    }

    fn proof() -> SameBuild {
        build_identity().same_build().unwrap()
    }

    #[test]
    fn an_offset_leads_back_to_its_function() {
        let offset = FunctionOffset::of(answer).unwrap();
        let entry = FunctionOffset::from_raw(offset.raw()).resolve(proof()).unwrap();
        let mut result = Vec::new();
        entry(&mut Invocation::new(&[], &mut result, 1)).unwrap();
        assert_eq!(result, [42]);
    }

    #[test]
    fn another_build_gives_no_proof() {
        assert!(BuildIdentity::from_bytes([7; 32]).same_build().is_none());
    }

    #[test]
    fn numbers_outside_the_code_are_refused() {
        for raw in [u64::MAX, u64::MAX / 2, 1 << 46] {
            let error = FunctionOffset::from_raw(raw).resolve(proof()).unwrap_err();
            assert_eq!(error, ExecutableError::UnknownOffset { offset: raw });
        }
    }

    /// They lie in the code, and there may be anything.
    #[test]
    fn numbers_that_are_made_up_are_refused() {
        let offset = FunctionOffset::of(answer).unwrap();
        for raw in [offset.raw() & OFFSET_MASK, offset.raw() + 1, offset.raw() ^ (1 << 63)] {
            let error = FunctionOffset::from_raw(raw).resolve(proof()).unwrap_err();
            assert_eq!(error, ExecutableError::UnknownOffset { offset: raw });
        }
    }

    // A static program has no shared libraries.
    #[cfg(not(target_feature = "crt-static"))]
    #[test]
    fn a_function_of_a_shared_library_is_refused() {
        // SAFETY: it is never called. It stands for an entry point from a plugin.
        let foreign =
            unsafe { mem::transmute::<usize, EntryPoint>(libc::getpid as *const () as usize) };
        let error = FunctionOffset::of(foreign).unwrap_err();
        assert!(error.to_string().contains("shared library"), "{error}");
    }
}
