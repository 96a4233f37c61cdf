//! The message by which a node or a client records the outcome of a task or of a chunk.

use std::time::Duration;

use brigade_codec::{chain, decode, encode};
use brigade_task::TaskError;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::body::Message;
use super::{Items, ItemsBuilder, MessageError};

/// Tag of an encoded value.
const VALUE: u8 = 0;

/// Tag of an encoded `TaskError`.
const FAILURE: u8 = 1;

/// Errors are bounded by their own limits; this is far above.
const ERROR_LIMIT: usize = 16 << 20;

/// The outcomes of all items of a task.
pub(crate) type OutcomeMessage = Message<OutcomeHead>;

/// The circumstances of an outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OutcomeHead {
    /// Name of the node, or of the client that cancelled the task.
    pub(crate) by: String,
    /// Number of items.
    pub(crate) items: u32,
    /// Time from the submission to the local pool to the end of the last item.
    pub(crate) run_time: Duration,
    /// Number of the delivery that led to this outcome, counted from 1.
    pub(crate) delivery: u64,
    /// A hash of each input, by which a batch that is run again detects that its inputs have
    /// changed. Empty for tasks outside of batches.
    pub(crate) input_hashes: Vec<u64>,
}

impl ItemsBuilder {
    /// Appends the outcome of an item, an encoded value.
    pub(crate) fn push_value(&mut self, encoded: &[u8]) {
        self.push_parts(&[&[VALUE], encoded]);
    }

    /// Appends the outcome of an item, a failure.
    pub(crate) fn push_error(&mut self, error: &TaskError) {
        let mut item = vec![FAILURE];
        // An error consists of texts and numbers, which can always be encoded; a client reports an
        // empty one as malformed.
        if let Err(error) = encode(error, &mut item, ERROR_LIMIT) {
            tracing::error!(%error, "cannot encode the error of a task");
        }
        self.push(&item);
    }
}

impl Items {
    /// Returns the outcomes of items that all have the same error.
    pub(crate) fn of_error(error: &TaskError, count: u32) -> Self {
        let mut outcomes = ItemsBuilder::default();
        for _ in 0..count {
            outcomes.push_error(error);
        }
        outcomes.finish()
    }
}

impl OutcomeHead {
    pub(crate) fn new(by: impl Into<String>, items: u32) -> Self {
        Self {
            by: by.into(),
            items,
            run_time: Duration::ZERO,
            delivery: 1,
            input_hashes: Vec::new(),
        }
    }
}

/// Reads one of the items of an outcome: the encoded value, or the failure.
pub(crate) fn item_outcome(mut item: Bytes) -> Result<Result<Bytes, TaskError>, MessageError> {
    if item.is_empty() {
        return Err(MessageError::malformed("an item is empty"));
    }
    match item.split_to(1)[0] {
        VALUE => Ok(Ok(item)),
        FAILURE => decode(&item).map(Err).map_err(|error| MessageError::malformed(chain(&error))),
        other => Err(MessageError::Malformed(format!("an item has the tag {other}"))),
    }
}
