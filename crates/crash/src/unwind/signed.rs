//! Finds the callers of functions for ARM that sign their return addresses, as those in libraries
//! of many distributions do: the upper bits of such an address are a signature.
//!
//! `framehop` rejects the tables of these functions, because it does not ask for the instruction
//! that says where the address is signed (`DW_CFA_AARCH64_negate_ra_state`).

use addr2line::gimli::{
    AArch64, BaseAddresses, CfaRule, EhFrame, EhFrameHdr, LittleEndian, Register, RegisterRule,
    UnwindContext, UnwindSection, Vendor,
};
use framehop::aarch64::{PtrAuthMask, UnwindRegsAarch64};

use crate::mapping::Mapping;

/// The tables of a file: addresses in it, and bytes.
pub(super) struct Tables<'a> {
    pub(super) frames: (u64, &'a [u8]),
    pub(super) index: (u64, &'a [u8]),
    /// The address of its code.
    pub(super) text: u64,
}

impl Tables<'_> {
    /// Returns from the function that has this address in the file, and returns the address at
    /// which its caller goes on. `None`, with the registers as before, if the tables do not say it
    /// in a simple way.
    pub(super) fn caller(
        &self,
        address: u64,
        is_first: bool,
        registers: &mut UnwindRegsAarch64,
        read: &mut impl FnMut(u64) -> Result<u64, ()>,
    ) -> Option<u64> {
        let bases = BaseAddresses::default()
            .set_eh_frame(self.frames.0)
            .set_eh_frame_hdr(self.index.0)
            .set_text(self.text);
        let mut frames = EhFrame::new(self.frames.1, LittleEndian);
        frames.set_address_size(8);
        frames.set_vendor(Vendor::AArch64);
        let index = EhFrameHdr::new(self.index.1, LittleEndian).parse(&bases, 8).ok()?;
        let mut context = UnwindContext::new();
        let find = EhFrame::cie_from_offset;
        let row = index.table()?;
        let row = row.unwind_info_for_address(&frames, &bases, &mut context, address, find).ok()?;
        let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
        let stack = match register {
            AArch64::SP => registers.sp(),
            AArch64::X29 => registers.fp(),
            _ => return None,
        };
        let stack = stack.checked_add_signed(offset)?;
        let mut restored = |register: Register, now: Option<u64>| match row.register(register) {
            Some(RegisterRule::Offset(offset)) => read(stack.checked_add_signed(offset)?).ok(),
            None | Some(RegisterRule::SameValue) => now,
            Some(_) => None,
        };
        let frame = restored(AArch64::X29, Some(registers.fp()))?;
        // Only the innermost function may still have its return address in the register.
        let link = restored(AArch64::X30, is_first.then(|| registers.lr()))?;
        let has_advanced = stack > registers.sp() || (is_first && stack == registers.sp());
        if !has_advanced {
            return None;
        }
        registers.set_sp(stack);
        registers.set_fp(frame);
        registers.set_lr(link);
        Some(registers.lr())
    }
}

/// Returns the bits of an address that are no signature: a kernel signs with those that no address
/// of a process has.
pub(super) fn mask(mappings: &[Mapping]) -> PtrAuthMask {
    let highest = mappings.iter().map(|mapping| mapping.end - 1).max();
    PtrAuthMask::from_max_known_address(highest.unwrap_or(u64::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a function with eight instructions at 0x1000:
    /// `paciasp; stp x29, x30, [sp, #-32]!`, and so on.
    const FRAMES: [u8; 52] = [
        // What the functions have in common: the caller's stack is at the stack pointer.
        16, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 4, 0x78, 30, 1, 0x1b, 0x0c, 31, 0,
        // From 0x1000, which is relative to this, on, for 32 bytes.
        24, 0, 0, 0, 24, 0, 0, 0, 0xe4, 0xef, 0xff, 0xff, 32, 0, 0, 0, 0,
        // After one instruction the address is signed, after two the registers are stored. Four
        // zeros end the table.
        0x41, 0x2d, 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0, 0, 0, 0, 0, 0,
    ];
    const FRAMES_AT: u64 = 0x2000;

    /// It has the function at 0x1000, with its frame at 0x2014.
    const INDEX: [u8; 20] = [
        1, 0x1b, 0x03, 0x3b, 0xfc, 0xef, 0xff, 0xff, 1, 0, 0, 0, 0, 0xe0, 0xff, 0xff, 0x14, 0xf0,
        0xff, 0xff,
    ];
    const INDEX_AT: u64 = 0x3000;

    const STACK_AT: u64 = 0x7fff_0000_1000;
    const CALLER: u64 = 0x7fff_8000_4564;
    const SIGNATURE: u64 = 0x0039_0000_0000_0000;

    /// Returns the address at which the caller goes on, its stack and its frame.
    fn caller(address: u64, is_first: bool, link: u64) -> Option<(u64, u64, u64)> {
        let tables =
            Tables { frames: (FRAMES_AT, &FRAMES), index: (INDEX_AT, &INDEX), text: 0x1000 };
        let mapped = b"7fff00000000-7fff90000000 r-xp 00000000 fd:00 17 /lib/libc.so.6\n";
        let mask = mask(&Mapping::parse_all(mapped));
        let mut registers =
            UnwindRegsAarch64::new_with_ptr_auth_mask(mask, link, STACK_AT, STACK_AT);
        let mut read = |address| match address - STACK_AT {
            0 => Ok(STACK_AT + 96),
            8 => Ok(CALLER | SIGNATURE),
            _ => Err(()),
        };
        let next = tables.caller(address, is_first, &mut registers, &mut read)?;
        assert_eq!(registers.lr(), next);
        Some((next, registers.sp(), registers.fp()))
    }

    #[test]
    fn a_function_that_signs_its_return_address_has_a_caller() {
        let unchanged = Some((CALLER, STACK_AT, STACK_AT));
        assert_eq!(caller(0x1000, true, CALLER), unchanged);
        assert_eq!(caller(0x1004, true, CALLER | SIGNATURE), unchanged);
        for is_first in [true, false] {
            let stored = Some((CALLER, STACK_AT + 32, STACK_AT + 96));
            assert_eq!(caller(0x1010, is_first, 1), stored);
        }
    }

    #[test]
    fn where_the_tables_say_nothing_there_is_no_caller() {
        assert_eq!(caller(0x1020, true, CALLER), None);
        assert_eq!(caller(0xfff, true, CALLER), None);
        // The return address would still be in its register, as after the innermost function.
        assert_eq!(caller(0x1004, false, CALLER), None);
    }

    #[test]
    fn any_mappings_have_a_mask() {
        assert_eq!(mask(&[]).0, u64::MAX);
        for line in ["0-1 r-xp 0 0:0 0", "0-ffffffffffffffff r-xp 0 0:0 0"] {
            assert_ne!(mask(&Mapping::parse_all(line.as_bytes())).0, 0);
        }
    }
}
