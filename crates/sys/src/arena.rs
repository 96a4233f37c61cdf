//! Carries large payloads between a host and its workers, each copied once into shared memory and
//! once out of it.
//!
//! An arena is a large sparse memfd that is mapped once, at the handshake, and in which blocks are
//! allocated. A message then holds only the location of its payload. Memory is taken only as far as
//! blocks touch it, and memory that was used before is used again first: it is *warm* (has its
//! pages), while a fresh page costs several times as much as copying into it.
//!
//! | arena | number | written by | read by | allocated by |
//! |---|---|---|---|---|
//! | arguments | one per pool | host: [`ArgumentArena`] | workers: [`ArgumentView`] | host |
//! | results | one per worker | worker: [`ResultArena`] | host: [`ResultView`] | worker |
//!
//! Other workers read buffers in an arena of results through [`ForeignArena`].
//!
//! A worker reuses a block of results when it has no handle of the block and the host has released
//! it as often as messages have named it: see [`FrozenBlock`] and [`Loan`].
//!
//! # Blocks of results
//!
//! | block | allocated by | read by the host |
//! |---|---|---|
//! | payload | [`ResultArena::put`] | by [`Loan::copy_into`], which copies |
//! | buffer | [`ResultArena::allocate_block`] | by [`Loan::as_bytes`], in place |
//! | offer | [`ResultArena::offer`] | by [`Loan::copy_offered`], from the worker's own memory |
//! | landing | [`ResultArena::landing`] | not; it is [filled](Loan::fill) |
//!
//! The header of a payload is at the start of the block, that of a buffer at the end of a page of
//! its own. The payload follows, and the block ends with a page.
//!
//! A header has [`HEADER`] bytes and lies directly before the payload. In it the host counts how
//! often it has released the block, and says how much of the block it has left warm.
//!
//! # Access rules
//!
//! - Workers get the argument arena as a descriptor without write access: their mapping is
//!   read-only and cannot be made writable, and they keep no descriptor of it. So a worker that
//!   runs wild reaches no other worker's argument. (The seal `F_SEAL_FUTURE_WRITE` would do that
//!   too, but with it the kernel refuses to release parts of the memory.)
//! - The host writes a block before it sends the message about it, and frees it after the outcome
//!   has arrived. In between nobody writes.
//! - A worker may scribble over its result arena at any time. Of a payload the host holds no
//!   reference to the bytes; it copies them out and looks at the copy.
//! - The host holds references to the bytes of a buffer, which is sound as long as nobody writes
//!   them. [`Protection`] is the setting:
//!
//!   - `Trusted`: sound as long as the worker has no undefined behavior, because freezing a block
//!     consumes the only handle that can write. It costs nothing.
//!   - `ReadOnly`: sound against stray writes too, for example of a C library. They fault in the
//!     worker. It does not stop code that changes the mapping, or has another one. The page
//!     table changes twice, which costs about as much as a copy.
//!   - `Copied`: sound against everything. The host holds no reference to memory that a worker
//!     can write. The cost is a copy.
//!
//!   Buffers in the arena of arguments need none of this: no worker can write them.
//! - A fork of the host shares the arenas with it, and touches neither blocks nor counters:
//!   dropping a block or a loan there has no effect. The same holds for a fork of a worker.
//!
//! The memory has no name, and its size is sealed: nobody can shrink it, so an access never raises
//! SIGBUS.
//!
//! ```
//! use brigade_sys::arena::{ArgumentArena, ArgumentView};
//! use std::os::fd::AsFd;
//!
//! let host = ArgumentArena::create("example", 1 << 20, 1 << 20)?;
//! let worker = ArgumentView::open(host.as_fd().try_clone_to_owned()?, host.len())?;
//! let block = host.put(&[b"large ", b"payload"]).expect("room");
//! assert_eq!(worker.bytes(block.offset(), block.len()), Some(&b"large payload"[..]));
//! # Ok::<(), std::io::Error>(())
//! ```

mod argument;
mod budget;
mod control;
mod counters;
mod foreign;
mod landing;
mod lent;
mod loan;
mod loans;
pub(crate) mod mapping;
mod offer;
mod ranges;
mod reach;
mod reference;
mod result;
mod result_block;
mod succession;
#[cfg(test)]
mod tests;
mod view;

use crate::memory;
pub use argument::{ArgumentArena, ArgumentBlock, SharedBlock};
pub use budget::{AllocError, Protection, WhenFull, default_budget};
pub use control::Terms;
pub use foreign::ForeignArena;
pub use landing::Landing;
pub use lent::LentBlock;
pub use loan::{Loan, ResultView};
pub use offer::Offer;
pub use reach::{MAX_OFFERED, OFFERED};
pub use reference::ArenaRef;
pub use result::ResultArena;
pub use result_block::{FrozenBlock, ResultBlock};
pub use succession::LeftBlock;
pub use view::ArgumentView;

/// Default budget of an arena. This much free memory stays warm; the rest goes back to the system.
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

/// Bytes before the payload of a block of results, so that header and payload share no cache line:
/// some ARM processors have lines of 128 bytes, and those of x86 fetch pairs.
pub const HEADER: usize = 128;

/// The word of a header that counts the host's releases.
const RELEASED: usize = 8;
/// The word of a header in which the host writes how many bytes of the block it has left warm.
const WARM: usize = 16;
