//! The outcome of a task, as its worker reports it.

use brigade_sys::numbers::Unit;
use serde::{Deserialize, Serialize};

use crate::location::Location;

/// The outcome of a call. A value stays encoded and borrows the link's buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// The encoded value.
    Value(&'a [u8]),
    /// The encoded value lies in the worker's arena of results.
    InArena(Location),
    /// The worker [offers](brigade_sys::arena::Offer) the value in its own memory, and waits for
    /// the host.
    Offered(Offered),
    /// A value with shared buffers. Boxed because such values are few.
    Buffered(Box<Buffered<'a>>),
    /// The function panicked.
    Panicked(Box<PanicReport>),
    /// The argument could not be decoded; the function did not run.
    ArgumentCodec(String),
    /// The value could not be encoded.
    ResultCodec(String),
    /// The worker has no such function.
    UnknownFunction(String),
}

/// An encoded value and the [list of its buffers](crate::buffers).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffered<'a> {
    /// Set if the value lies in the worker's arena of results.
    pub location: Option<Location>,
    /// The value, unless it lies in the arena, then the list of its buffers.
    pub payload: &'a [u8],
}

/// A value in a worker's own memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offered {
    /// Offset of the offer's block in the arena of results.
    pub block: u64,
    /// Address of the bytes in the worker.
    pub address: u64,
    /// Number of bytes, less than 2^59.
    pub length: u64,
    /// The size of a number, if the encoded value begins with how many numbers these bytes are.
    pub counted: Option<Unit>,
    /// `true` if the bytes end with a [table](brigade_codec::parts::Table) of the vectors in the
    /// value.
    pub in_parts: bool,
}

/// A panic in a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PanicReport {
    /// The panic's payload, if it was a string.
    pub message: String,
    /// `file:line:column`.
    pub location: Option<String>,
    /// Empty if backtraces are switched off.
    pub backtrace: String,
}
