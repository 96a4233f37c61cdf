//! Address space that is left to the program.

use std::io;

use brigade_sys::memory::require_address_space;

/// Address space that has to be left before a thread is started or a worker's memory is mapped:
/// room for a stack, and for the program, which would abort if an allocation failed.
const RESERVED_SPACE: u64 = 10 << 20;

/// Returns an error if another thread could use up the address space.
///
/// # Errors
/// If the limit of this process leaves too little.
pub fn require_reserve() -> io::Result<()> {
    require_address_space(RESERVED_SPACE)
}
