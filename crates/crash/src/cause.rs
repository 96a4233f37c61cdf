//! The cause of a signal.

use std::fmt;

use brigade_sys::crash::Snapshot;
use serde::{Deserialize, Serialize};

use crate::mapping::{self, Mapping};
use crate::registers::instruction;

/// The reason for which a signal ended a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Cause {
    /// A null pointer was used, or a field or an element behind one.
    NullPointer,
    /// A thread has used up its stack.
    StackOverflow,
    /// Nothing is mapped at the address: the memory was freed, or never existed.
    Unmapped,
    /// The memory may not be accessed at all, like a page that guards other memory.
    Guarded,
    /// The memory may be read, but not written to.
    ReadOnly,
    /// The code that was called is no code.
    NotExecutable,
    /// The processor did not say which address. No memory can have it, or it was not aligned.
    Impossible,
    /// The address has to be a multiple of some number, and is not.
    Misaligned,
    /// The address is behind the end of a mapped file, which is shorter now.
    BeyondFile,
    /// The process has aborted itself.
    Aborted,
    /// An instruction that the processor does not know, or one with which compilers mark code that
    /// must not be reached.
    InvalidInstruction,
    /// An integer was divided by zero, or the quotient is too large.
    Division,
    /// Another fault of arithmetic.
    Arithmetic,
    /// A filter of system calls refused one.
    ForbiddenCall {
        /// The number of the system call.
        number: i32,
    },
    /// A trap of a debugger or of an assertion.
    Trap,
    /// Another process has sent the signal.
    Sent {
        /// The process.
        by: u32,
    },
    /// The memory of the worker's control group ran out, and the kernel killed the worker.
    OutOfMemory,
    /// Some other reason.
    Other,
}

/// Addresses below this are never mapped (`vm.mmap_min_addr` is 64 KiB almost everywhere).
const NULL_PAGE: u64 = 64 << 10;

/// A thread whose stack pointer is at most this far below its stack has overflowed it.
const BELOW: u64 = 1 << 20;

impl Cause {
    /// Finds the cause in a record. The stack pointer and the mappings are those of the record.
    pub(crate) fn of(record: &Snapshot, stack_pointer: u64, mappings: &[Mapping]) -> Self {
        let by_itself = record.sender == 0 || record.sender == record.process;
        if record.code <= 0 && !by_itself {
            return Self::Sent { by: record.sender };
        }
        match record.signal {
            libc::SIGABRT => Self::Aborted,
            _ if record.code <= 0 => Self::Other,
            libc::SIGSEGV => memory(record, stack_pointer, mappings),
            libc::SIGBUS => match record.code {
                1 => Self::Misaligned,
                2 => Self::BeyondFile,
                _ => Self::Other,
            },
            libc::SIGILL => Self::InvalidInstruction,
            libc::SIGFPE if record.code <= 2 => Self::Division,
            libc::SIGFPE => Self::Arithmetic,
            libc::SIGSYS => Self::ForbiddenCall { number: record.system_call },
            libc::SIGTRAP => Self::Trap,
            _ => Self::Other,
        }
    }

    /// Returns `true` if the address of a report belongs to the cause.
    pub(crate) fn has_address(self) -> bool {
        matches!(
            self,
            Self::NullPointer
                | Self::StackOverflow
                | Self::Unmapped
                | Self::Guarded
                | Self::ReadOnly
                | Self::NotExecutable
                | Self::Misaligned
                | Self::BeyondFile
        )
    }

    /// Writes the cause, which follows the name of a signal.
    pub(crate) fn write(self, address: u64, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NullPointer if address == 0 => {
                out.write_str("invalid address 0x0 (a null pointer)")
            }
            Self::NullPointer => {
                write!(out, "invalid address {address:#x} (a field of a null pointer)")
            }
            Self::StackOverflow => write!(out, "stack overflow at address {address:#x}"),
            Self::Unmapped => write!(out, "invalid address {address:#x} (freed, or never mapped)"),
            Self::Guarded => write!(out, "invalid address {address:#x} (a guard page)"),
            Self::ReadOnly => write!(out, "write to address {address:#x}, which is read-only"),
            Self::NotExecutable => write!(out, "call of address {address:#x}, which is not code"),
            Self::Impossible => out.write_str("an impossible or misaligned address"),
            Self::Misaligned => write!(out, "misaligned address {address:#x}"),
            Self::BeyondFile => write!(
                out,
                "address {address:#x} behind the end of a mapped file, which is shorter now"
            ),
            Self::Aborted => out.write_str("aborted"),
            Self::InvalidInstruction => out.write_str(
                "an invalid instruction: a compiler's trap, or code for another processor",
            ),
            Self::Division => out.write_str("a division by zero, or its quotient is too large"),
            Self::Arithmetic => out.write_str("an arithmetic fault"),
            Self::ForbiddenCall { number } => write!(out, "system call {number} is forbidden"),
            Self::Trap => out.write_str("a trap of a debugger or an assertion"),
            Self::Sent { by } => write!(out, "sent by process {by}"),
            Self::OutOfMemory => {
                out.write_str("killed because the memory of its control group ran out")
            }
            Self::Other => out.write_str("for an unknown reason"),
        }
    }
}

/// Finds the cause of SIGSEGV.
fn memory(record: &Snapshot, stack_pointer: u64, mappings: &[Mapping]) -> Cause {
    /// `SEGV_MAPERR` and `SEGV_ACCERR`; the kernel has others, without an address.
    const WITH_ADDRESS: [i32; 2] = [1, 2];
    let address = record.address;
    if !WITH_ADDRESS.contains(&record.code) {
        return Cause::Impossible;
    }
    if address < NULL_PAGE {
        return Cause::NullPointer;
    }
    let there = mapping::find(mappings, address);
    if overflows(address, stack_pointer, mappings) {
        return Cause::StackOverflow;
    }
    match there {
        None => Cause::Unmapped,
        Some(there) if there.is_readable && !there.is_writable && there.is_executable => {
            Cause::ReadOnly
        }
        Some(there) if there.is_readable && there.is_writable => Cause::NotExecutable,
        Some(there) if there.is_readable => {
            let is_call = record.registers.contains(&address) && instruction(record) == address;
            if is_call { Cause::NotExecutable } else { Cause::ReadOnly }
        }
        Some(_) => Cause::Guarded,
    }
}

/// Returns `true` if the address lies directly below the stack to which the stack pointer belongs.
fn overflows(address: u64, stack_pointer: u64, mappings: &[Mapping]) -> bool {
    let stack = mappings.iter().find(|it| it.is_readable && it.end > stack_pointer);
    stack.is_some_and(|stack| {
        address < stack.start
            && stack.start - address <= BELOW
            && stack_pointer < stack.start.saturating_add(BELOW)
            && stack_pointer >= stack.start.saturating_sub(BELOW)
            && mapping::find(mappings, address).is_none_or(|there| !there.is_readable)
    })
}

/// The numbers of signals, which are the same on all processors that are supported.
mod libc {
    pub(super) const SIGILL: i32 = 4;
    pub(super) const SIGTRAP: i32 = 5;
    pub(super) const SIGABRT: i32 = 6;
    pub(super) const SIGBUS: i32 = 7;
    pub(super) const SIGFPE: i32 = 8;
    pub(super) const SIGSEGV: i32 = 11;
    pub(super) const SIGSYS: i32 = 31;
}

/// Returns `true` for the signals that the handlers record.
pub(crate) fn is_crash(signal: i32) -> bool {
    use libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
    matches!(signal, SIGABRT | SIGBUS | SIGFPE | SIGILL | SIGSEGV | SIGSYS | SIGTRAP)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &[u8] = b"55550000-55560000 r-xp 00000000 fd:00 17 /usr/bin/shop\n\
        55570000-55580000 r--p 00000000 fd:00 17 /usr/bin/shop\n\
        60000000-60001000 ---p 00000000 00:00 0 \n\
        60001000-60200000 rw-p 00000000 00:00 0 \n\
        70000000-70001000 ---p 00000000 00:00 0 \n";

    fn cause(signal: i32, code: i32, address: u64, stack_pointer: u64) -> Cause {
        let record = Snapshot { signal, code, address, ..Snapshot::default() };
        Cause::of(&record, stack_pointer, &Mapping::parse_all(MAPS))
    }

    #[test]
    fn each_kind_of_address_has_its_cause() {
        let on_stack = 0x6010_0000;
        assert_eq!(cause(11, 1, 0x10, on_stack), Cause::NullPointer);
        assert_eq!(cause(11, 1, 0x1234_5678_0000, on_stack), Cause::Unmapped);
        assert_eq!(cause(11, 2, 0x7000_0800, on_stack), Cause::Guarded);
        assert_eq!(cause(11, 2, 0x5557_0010, on_stack), Cause::ReadOnly);
        assert_eq!(cause(11, 2, 0x6010_0010, on_stack), Cause::NotExecutable);
        assert_eq!(cause(11, 128, 0, on_stack), Cause::Impossible);
        assert_eq!(cause(11, 2, 0x6000_0ff8, 0x6000_1010), Cause::StackOverflow);
        assert_eq!(cause(11, 2, 0x6000_0ff8, 0x6000_0ff0), Cause::StackOverflow);
        assert_eq!(cause(11, 2, 0x6000_0ff8, 0x6018_0000), Cause::Guarded);
        assert_eq!(cause(7, 2, 0x6000_0ff8, on_stack), Cause::BeyondFile);
        assert_eq!(cause(8, 1, 0x5555_0000, on_stack), Cause::Division);
    }

    #[test]
    fn a_signal_from_elsewhere_names_its_sender() {
        let record = Snapshot { signal: 11, sender: 7, process: 8, ..Snapshot::default() };
        assert_eq!(Cause::of(&record, 0, &[]), Cause::Sent { by: 7 });
        let record = Snapshot { signal: 6, sender: 8, process: 8, ..Snapshot::default() };
        assert_eq!(Cause::of(&record, 0, &[]), Cause::Aborted);
    }
}
