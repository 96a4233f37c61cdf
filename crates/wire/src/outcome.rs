//! The outcome of a task, as its worker reports it.

use serde::{Deserialize, Serialize};

use crate::location::Location;

/// The outcome of a call. A value stays encoded and borrows the link's buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// The encoded value.
    Value(&'a [u8]),
    /// The encoded value lies in the worker's arena of results.
    InArena(Location),
    /// A value with segments. Boxed because such values are few.
    Segmented(Box<Segmented<'a>>),
    /// The function panicked.
    Panicked(Box<PanicReport>),
    /// The argument could not be decoded; the function did not run.
    ArgumentCodec(String),
    /// The value could not be encoded.
    ResultCodec(String),
    /// The worker has no such function.
    UnknownFunction(String),
}

/// An encoded value and the [list of its segments](crate::segments).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segmented<'a> {
    /// Set if the encoding lies in the worker's arena of results.
    pub location: Option<Location>,
    /// Offset of a block in the arena of results, by which the worker
    /// [offers](brigade_sys::arena::Offer) the numbers that are apart from the encoding. It waits
    /// for the host.
    pub offer: Option<u64>,
    /// The encoding, unless it lies in the arena, then the list of segments.
    pub payload: &'a [u8],
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
