//! Carries large payloads between a host and its workers, each copied once into shared memory and
//! once out of it.
//!
//! An arena is a large sparse memfd that is mapped once, at the handshake, and in which blocks are
//! allocated. A message then holds only the location of its payload. Memory is taken only as far as
//! blocks touch it, and memory that was used before is used again first: it is *warm* (has its
//! pages), while a fresh page costs several times as much as copying into it.
//!
//! | arena | number | written by | read by | allocated and freed by |
//! |---|---|---|---|---|
//! | arguments | one per pool | host: [`ArgumentArena`] | workers: [`ArgumentView`] | host |
//! | results | one per worker | worker: [`ResultArena`] | host: [`ResultView`] | worker |
//!
//! A worker frees a block of results after the host has cleared the block's flag.
//!
//! # Access rules
//!
//! - Workers get the argument arena as a descriptor without write access: their mapping is
//!   read-only and cannot be made writable, and they keep no descriptor of it. So a worker that
//!   runs wild reaches no other worker's argument. (The seal `F_SEAL_FUTURE_WRITE` would do that
//!   too, but with it the kernel refuses to release parts of the memory.)
//! - The host writes a block before it sends the message about it, and frees it after the outcome
//!   has arrived. In between nobody writes.
//! - A worker may scribble over its result arena at any time. The host never holds a reference to
//!   bytes in it; it copies them out and looks at the copy.
//! - A block of results begins with a header of [`HEADER`] bytes, whose first word is its flag:
//!   [`IN_USE`], set by the worker; then, set by the host, the part of the block that is still
//!   warm, or [`RELEASED`] if all of it is.
//! - A fork of the host shares the arenas with it, and touches neither blocks nor flags: dropping a
//!   block or a loan there has no effect.
//!
//! The memory has no name, and its size is sealed: nobody can shrink it, so an access never raises
//! SIGBUS.
//!
//! ```
//! use brigade_sys::arena::{ArgumentArena, ArgumentView};
//! use std::os::fd::AsFd;
//!
//! let host = ArgumentArena::create("example", 1 << 20)?;
//! let worker = ArgumentView::open(host.as_fd().try_clone_to_owned()?, host.len())?;
//! let block = host.put(&[b"large ", b"payload"]).expect("room");
//! assert_eq!(worker.bytes(block.offset(), block.len()), Some(&b"large payload"[..]));
//! # Ok::<(), std::io::Error>(())
//! ```

mod argument;
mod loan;
pub(crate) mod mapping;
mod ranges;
mod reference;
mod result;
#[cfg(test)]
mod tests;
mod view;

use crate::memory;
pub use argument::{ArgumentArena, ArgumentBlock, SharedBlock};
pub use loan::{Loan, ResultView};
pub use reference::ArenaRef;
pub use result::ResultArena;
pub use view::ArgumentView;

/// Maximum free memory that an arena keeps warm; the rest goes back to the system.
///
/// Enough for four payloads of 16 MiB, one after the other or at once, and little enough that each
/// worker can have it.
pub const KEPT: usize = 64 << 20;

/// Minimum size of an arena that had to be reduced: a smaller one would not be worth its
/// descriptor.
pub const SMALLEST: usize = 16 << 20;

/// Returns the size in bytes for each of `sharers` new arenas: `most`, or less if the address space
/// of this process is limited. Then all of them together take an eighth of the address space that
/// is left. Returns `None` if an arena would be smaller than [`SMALLEST`].
///
/// A process that was started by this one has the same limit and less in use, so it can map them
/// too.
pub fn affordable(most: usize, sharers: usize) -> Option<usize> {
    share_of(memory::address_space_left(), most, sharers)
}

fn share_of(left: Option<u64>, most: usize, sharers: usize) -> Option<usize> {
    let Some(left) = left else { return Some(most) };
    let share = usize::try_from(left).unwrap_or(usize::MAX) / SHARE / sharers.max(1);
    Some(share.min(most)).filter(|share| *share >= SMALLEST)
}

/// Fraction of the address space for all arenas; most of it is the program's.
const SHARE: usize = 8;

/// Bytes before the payload of a block of results: a cache line, so that flag and payload do not
/// share one.
pub const HEADER: usize = 64;

/// The flag of a block of results that the host may still read.
pub const IN_USE: u64 = 1;

/// The flag of a block of results that the host has released with all of its memory warm. Any other
/// value except [`IN_USE`] also means released: it is the number of bytes of the block, in whole
/// pages, that are warm.
pub const RELEASED: u64 = 0;
