//! Byte messages from one process to another through shared memory: one writes, one reads.
//!
//! ```text
//! word 0     head      what the producer has published, in words since the beginning; only the producer writes it
//! word 16    tail      what the consumer has consumed, likewise; only the consumer writes it
//! word 32    bell      a futex word: who sleeps here, and whether
//! word 40    more      whether the producer has more than there was room for
//! word 48..  data      a power of two of words; position modulo that number is the index
//! ```
//! Head, tail and bell have cache lines of their own (two each, because processors fetch pairs).
//!
//! A *piece* is a frame word (its length in bytes, and whether it is the first and the last of its message), for a first
//! piece the message's length, then the bytes, padded to whole words. The producer writes all of it and then publishes
//! it with one store (release) to `head`, so a producer that dies at any instruction leaves either a whole piece or none.
//!
//! Neither side trusts the other: positions are compared with the side's own copy, lengths with what was published, and
//! what does not fit is an error and not an access. All memory is read and written as relaxed atomics, so a process
//! that scribbles over it changes values and nothing else.

mod bell;
mod consumer;
#[cfg(all(test, loom))]
mod loom;
mod memory;
mod producer;
#[cfg(test)]
mod tests;

pub use bell::{Bell, Doorbell, Knocker, Listener};
pub use consumer::Consumer;
pub use memory::Region;
pub use producer::{Producer, Pushed};

const HEAD: usize = 0;
const TAIL: usize = 16;
const BELL: usize = 32;
const MORE: usize = 40;
const DATA: usize = 48;

/// Words of a ring with so many data words.
pub const fn words(capacity: usize) -> usize {
    DATA + capacity
}

/// The most bytes of a piece; all pieces of a message but its last have as many. With frame and length it takes a quarter
/// of the ring, so that one side writes while the other reads.
const fn piece_bytes(capacity: usize) -> usize {
    (capacity / 4 - 2) * 8
}

/// Bits of a frame word above the length.
const FIRST: u64 = 1 << 40;
const LAST: u64 = 1 << 41;
const LENGTH: u64 = (1 << 40) - 1;
