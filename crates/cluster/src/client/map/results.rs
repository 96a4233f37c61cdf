//! The results of one chunk, decoded as they are taken.

use std::ops::Range;

use brigade_codec::{CodecError, chain, decode};
use brigade_task::TaskError;
use brigade_task::map::ChunkResults;
use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::client::failure;
use crate::message::{Items, item_outcome};

/// The results of a chunk, or of an input that was not sent.
#[derive(Debug)]
#[expect(unnameable_types, reason = "the type of a handle, a map or a future has it inside")]
pub struct Results {
    /// Number of chunks, and of inputs that were not sent, before this one.
    index: u64,
    /// Position of the next result's input.
    position: u64,
    /// The items, or the failure that all results are.
    outcome: Result<Items, TaskError>,
    /// Number of results that were not taken.
    left: u32,
    /// Number of items, and of the bytes of their inputs, in the map's window.
    pub(super) items: u32,
    pub(super) bytes: usize,
}

impl Results {
    pub(super) fn new(
        (index, position): (u64, u64),
        outcome: Result<Items, TaskError>,
        items: u32,
        bytes: usize,
    ) -> Self {
        Self { index, position, outcome, left: items, items, bytes }
    }

    /// Returns the position of the input whose result was taken last.
    pub(super) fn position(&self) -> u64 {
        self.position.saturating_sub(1)
    }

    /// Takes the next result.
    pub(super) fn next<R: DeserializeOwned + 'static>(&mut self) -> Option<Result<R, TaskError>> {
        self.left = self.left.checked_sub(1)?;
        self.position += 1;
        let undecodable = |error: CodecError| {
            failure::codec(format!("the result cannot be decoded: {}", chain(&error)), None)
        };
        let result = self.next_value().and_then(|value| decode(&value).map_err(undecodable));
        Some(result.map_err(|error| error.at(self.position())))
    }

    fn next_value(&mut self) -> Result<Bytes, TaskError> {
        let items = self.outcome.as_mut().map_err(|error| error.clone())?;
        let outcome = match items.next() {
            Some(item) => item.and_then(item_outcome).map_err(|error| error.to_string()),
            None => Err("the outcome has too few items".to_owned()),
        };
        outcome.map_err(|message| failure::codec(message, None))?
    }
}

impl ChunkResults for Results {
    fn positions(&self) -> Range<u64> {
        self.index..self.index + 1
    }
}
