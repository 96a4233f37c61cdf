//! Values whose numbers workers [offer](brigade_sys::arena::Offer) in their own memory, and numbers
//! of arguments for which they have [memory](brigade_sys::arena::Landing). `copy` copies them.

pub(super) mod copy;
mod spread;

use std::sync::Arc;

use crate::payload::{KeptParts, Owed, SegmentedValue};
use brigade_supervisor::WorkerProcess;
use brigade_sys::arena::{Loan, MAX_OFFERED, ResultView};
use brigade_wire::codec::parts::{MAX_PARTS, joined_length};
use brigade_wire::segments::Apart;
use brigade_wire::{Finished, Outcome, Wanted};

/// The end of a task of whose value numbers are still in its worker's memory.
pub(super) struct LargeOffer {
    /// The value without them.
    pub(super) value: SegmentedValue,
    /// The numbers, of possible lengths.
    pub(super) apart: Vec<Apart>,
    /// Releases the worker when it is dropped.
    pub(super) loan: Loan,
    /// With an empty value.
    pub(super) finished: Finished<'static>,
}

/// A large value or argument to copy; see `copy_large`.
pub(super) struct ToCopy {
    pub(super) process: Arc<WorkerProcess>,
    pub(super) large: Large,
}

/// A value that a worker offers, or an argument that it wants.
pub(super) enum Large {
    Value(LargeOffer),
    Argument(Want),
}

/// A part of the argument of a task that has begun.
pub(super) struct Want {
    pub(super) kept: Arc<KeptParts>,
    pub(super) owed: Owed,
    /// Address in the worker; `None` if the block of the loan has the room.
    pub(super) address: Option<u64>,
    /// Releases the worker when it is dropped.
    pub(super) loan: Loan,
}

impl Large {
    pub(super) fn loan(&self) -> &Loan {
        match self {
            Self::Value(offer) => &offer.loan,
            Self::Argument(want) => &want.loan,
        }
    }
}

impl Want {
    /// Returns an error if the task that the worker has to answer has no such argument, or the
    /// worker no such memory.
    pub(super) fn new(
        wanted: &Wanted,
        kept: Option<Arc<KeptParts>>,
        results: Option<&Arc<ResultView>>,
    ) -> Result<Self, String> {
        let address = Some(wanted.address).filter(|address| *address != 0);
        let results = results.filter(|results| address.is_none() || results.reaches());
        let owed = kept.and_then(|kept| Some((kept.owed()?, kept)));
        let (owed, kept) = owed.ok_or("asked for an argument that it has, or that was not kept")?;
        let length = kept.part(owed.part).map_or(0, <[u8]>::len);
        let room = if address.is_some() { 0 } else { length };
        let block = usize::try_from(wanted.block).ok();
        let loan = results.zip(block).and_then(|(results, block)| results.loan_buffer(block, room));
        let loan = loan.ok_or("asked for an argument in a block that is out of bounds")?;
        Ok(Self { kept, owed, address, loan })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.kept.part(self.owed.part).unwrap_or_default()
    }
}

impl LargeOffer {
    /// Returns an error if the worker cannot have made such an offer, by this block. `is_task` is
    /// `true` if it has to answer a task that is no chunk.
    pub(super) fn new(
        block: u64,
        (value, apart): (SegmentedValue, Vec<Apart>),
        finished: &Finished<'_>,
        is_task: bool,
        results: Option<&Arc<ResultView>>,
        limit: usize,
    ) -> Result<Self, String> {
        let lengths = apart.iter().map(|it| (it.mark, it.length));
        let length = joined_length(value.encoded.len(), lengths);
        let block = usize::try_from(block).ok();
        let results = results.filter(|results| results.reaches());
        let loan = results.zip(block).and_then(|(results, block)| results.loan_buffer(block, 0));
        let has_parts = (1..=MAX_PARTS).contains(&apart.len());
        let is_right = is_task && has_parts && length <= limit.min(MAX_OFFERED);
        let loan = loan.filter(|_| is_right).ok_or("made an offer that is out of bounds")?;
        let finished = Finished { outcome: Outcome::Value(&[]), ..*finished };
        Ok(Self { value, apart, loan, finished })
    }
}
