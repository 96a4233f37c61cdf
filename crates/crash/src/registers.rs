//! The registers of a record, by their names.

use brigade_sys::crash::Snapshot;

/// The index of the frame pointer.
#[cfg(feature = "backtrace")]
pub(crate) const FRAME_POINTER: usize = if cfg!(target_arch = "aarch64") { 29 } else { 10 };

/// Returns the address of the instruction at which the thread was.
pub(crate) fn instruction(record: &Snapshot) -> u64 {
    register(record, if cfg!(target_arch = "aarch64") { 32 } else { 16 })
}

/// Returns the stack pointer.
pub(crate) fn stack_pointer(record: &Snapshot) -> u64 {
    register(record, if cfg!(target_arch = "aarch64") { 31 } else { 15 })
}

pub(crate) fn register(record: &Snapshot, index: usize) -> u64 {
    record.registers.get(index).copied().unwrap_or(0)
}
