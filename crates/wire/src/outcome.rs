//! What became of a task, as its worker reports it.

use serde::{Deserialize, Serialize};

use crate::message::Place;

/// How a call ended. A value stays encoded; it borrows the link's buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// The encoded result.
    Value(&'a [u8]),
    /// The encoded result, which lies in the worker's arena of results.
    Placed(Place),
    /// The function panicked.
    Panicked(Box<PanicReport>),
    /// The argument could not be decoded; the function did not run.
    ArgumentCodec(String),
    /// The result could not be encoded.
    ResultCodec(String),
    /// The worker has no such function.
    UnknownFunction(String),
}

/// A panic, told by the worker in which it happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PanicReport {
    /// The payload, if it was a string.
    pub message: String,
    /// `file:line:column`.
    pub location: Option<String>,
    /// Empty when it was switched off.
    pub backtrace: String,
}
