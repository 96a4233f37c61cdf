//! Carries byte messages from one process to another through shared memory, with one writer and one
//! reader.
//!
//! It is a bounded queue for a single producer and a single consumer (SPSC, after Lamport 1983).
//! Positions only grow, and each side remembers the other's, so that it rarely reads a line that
//! the other one writes.
//!
//! ```text
//! word 0      head      published words since the beginning; only the producer writes it
//! word 1      end of copy: the head at which the message in the copy ends, or 0
//! word 2..8   copy of a short message
//! word 16     tail      consumed words since the beginning; only the consumer writes it
//! word 32     bell      a futex word: set while the side that sleeps here is asleep
//! word 40     more      set while the producer has more than there was room for
//! word 48..   data      a power of two of words; position modulo that number is the index
//! ```
//! Head, tail and bell have cache lines of their own (two each, because processors fetch pairs).
//!
//! A *fragment* is a frame word (the length in bytes, and flags for the first and the last fragment
//! of a message), for a first fragment the message's length, then the bytes, padded to whole words.
//! The producer writes all of it and then publishes it with one store (release) to `head`, so a
//! producer that dies at any instruction leaves either a whole fragment or none.
//!
//! A *copy* of each message of up to `COPY_BYTES` lies beside the head, in a seqlock (with fences
//! after Boehm 2012) whose reader does not try again: a frame word, then the bytes. A consumer that
//! has taken everything before it gets the message with the cache line that tells it of the
//! message, instead of two lines one after the other. The producer sets the end of the copy to 0,
//! writes the copy, sets its end, and publishes the head. The consumer uses what it has read if the
//! end was the head before and after, and reads the data otherwise.
//!
//! A *short item* is the value of an item of a chunk, up to [`SHORT_ITEM`] bytes long. It is no
//! message: its frame word has the length, a flag, and the low bits of the item's index, and the
//! value follows. The consumer takes as many in succession as there are.
//!
//! Neither side trusts the other: positions are compared with the side's own copy, lengths with the
//! published words, and a value out of range is an error and never an access. All memory is read
//! and written as relaxed atomics, so a process that scribbles over it changes values and nothing
//! else.

mod bell;
mod consumer;
#[cfg(all(test, loom))]
mod loom;
mod memory;
mod packing;
mod producer;
#[cfg(not(loom))]
#[cfg(test)]
mod tests;

pub use bell::{Bell, Doorbell, LONG_PATIENCE, Listener, PATIENCE, RemoteDoorbell, WakeUp};
pub use consumer::{Consumer, Watch};
pub use memory::Region;
pub use producer::{Producer, Pushed};

const HEAD: usize = 0;
const COPY_END: usize = 1;
const COPY: usize = 2;
const TAIL: usize = 16;
const BELL: usize = 32;
const MORE: usize = 40;
const DATA: usize = 48;

/// Returns the number of words of a ring with `capacity` data words.
pub const fn words(capacity: usize) -> usize {
    DATA + capacity
}

/// Returns the maximum number of bytes in a fragment; all fragments of a message but the last have
/// exactly as many. With frame and length a fragment takes a quarter of the ring, so that one side
/// writes while the other reads.
const fn fragment_bytes(capacity: usize) -> usize {
    (capacity / 4 - 2) * 8
}

/// Number of words of a copy: the frame word and the message, as many as the head's line has room
/// for.
const COPY_WORDS: usize = 6;

/// Maximum number of bytes of a message that is copied.
const COPY_BYTES: usize = (COPY_WORDS - 1) * 8;

/// Flags of a frame word, above the length.
const FIRST: u64 = 1 << 40;
const LAST: u64 = 1 << 41;
const LENGTH: u64 = (1 << 40) - 1;

/// Maximum number of bytes of a short item.
pub const SHORT_ITEM: usize = 64;

/// Returns the part of a short item's frame word above the length.
#[inline]
const fn short_item(index: u32) -> u64 {
    1 << 42 | (index as u64) << 43
}
