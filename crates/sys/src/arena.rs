//! Large payloads between a host and its workers, each copied once into shared memory and once out of it.
//!
//! An arena is a large sparse memfd that is mapped once, at the handshake, and in which blocks are allocated. A message
//! then says where its payload lies. Memory is taken only as far as blocks touch it, and memory that was used before is
//! used again first: it is *warm* (has its pages), while a fresh page costs several times what copying into it costs.
//!
//! | arena | how many | written by | read by | allocated and freed by |
//! |---|---|---|---|---|
//! | arguments | one a pool | host: [`ArgumentArena`] | workers: [`ArgumentView`] | host |
//! | results | one a worker | worker: [`ResultArena`] | host: [`ResultView`] | worker, when the host has cleared the block's flag |
//!
//! # Who may touch what when
//!
//! - Workers get the argument arena by a descriptor that cannot be written through: their mapping is read-only and cannot be
//!   made anything else, and they keep no descriptor of it. So a worker that runs wild reaches no other worker's argument.
//!   (The seal `F_SEAL_FUTURE_WRITE` would do that too, but under it the kernel refuses to give memory back piece by piece.)
//! - The host writes a block before it sends the message about it, and frees it after the answer. In between nobody writes.
//! - A worker may scribble over its result arena at any time. The host never has a reference to bytes in there; it copies
//!   them out and looks at the copy.
//! - A block of results begins with a header of [`HEADER`] bytes, whose first word is its flag: [`IN_USE`] by the worker,
//!   then, by the host, how much of the block is still warm, or [`RELEASED`] if all of it is.
//! - A fork of the host shares the arenas with it, and touches neither blocks nor flags: to drop a block or a loan there does
//!   nothing.
//!
//! The memory has no name, and its size is sealed: an access never raises SIGBUS because somebody made it smaller.
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
mod result;
#[cfg(test)]
mod tests;
mod view;

use crate::memory;
pub use argument::{ArgumentArena, ArgumentBlock, SharedBlock};
pub use loan::{Loan, ResultView};
pub use result::ResultArena;
pub use view::ArgumentView;

/// The most free memory that an arena keeps warm; what is more goes back to the system.
///
/// Enough for four payloads of 16 MiB, one after the other or at once, and little enough that each worker can have it.
pub const KEPT: usize = 64 << 20;

/// The smallest size of an arena of which there was to be more: less would not be worth its descriptor.
pub const SMALLEST: usize = 16 << 20;

/// How many bytes each arena may have where `sharers` of them are about to be made: `most`, or less when this process has a
/// limit of its address space. Then all of them together take an eighth of what is left of it now. `None` when an
/// arena would be smaller than [`SMALLEST`].
///
/// A process that was started by this one has the same limit and less in use, so that it can map them as well.
pub fn affordable(most: usize, sharers: usize) -> Option<usize> {
    share_of(memory::address_space_left(), most, sharers)
}

fn share_of(left: Option<u64>, most: usize, sharers: usize) -> Option<usize> {
    let Some(left) = left else { return Some(most) };
    let share = usize::try_from(left).unwrap_or(usize::MAX) / SHARE / sharers.max(1);
    Some(share.min(most)).filter(|share| *share >= SMALLEST)
}

/// Most of the address space is the program's.
const SHARE: usize = 8;

/// Bytes before the payload of a block of results: a cache line, so that flag and payload do not share one.
pub const HEADER: usize = 64;

/// The flag of a block of results that the host may still read.
pub const IN_USE: u64 = 1;

/// The flag of a block of results that the host is done with, all of it warm. Any other value is done with too, and
/// says how many bytes of the block, a whole number of pages, are warm.
pub const RELEASED: u64 = 0;
