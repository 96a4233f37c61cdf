//! Values that workers [offer](brigade_sys::arena::Offer) in their own memory, and arguments for
//! which they have [memory](brigade_sys::arena::Landing). `copy_large` copies them.

use std::sync::Arc;

use crate::payload::{KeptBytes, Owed};
use brigade_supervisor::WorkerProcess;
use brigade_sys::arena::{Loan, MAX_OFFERED, ResultView};
use brigade_wire::codec::parts::Table;
use brigade_wire::{Finished, Offered, Outcome, Wanted};

/// The end of a task whose value is still in its worker's memory.
pub(super) struct Offer {
    pub(super) offered: Offered,
    pub(super) length: usize,
    /// The most bytes of the value, with all of its parts.
    pub(super) limit: usize,
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
    Value(Offer),
    Argument(Want),
}

/// The argument of a task that has begun.
pub(super) struct Want {
    pub(super) bytes: Arc<KeptBytes>,
    /// The part of them.
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
        bytes: Option<Arc<KeptBytes>>,
        results: Option<&Arc<ResultView>>,
    ) -> Result<Self, String> {
        let address = Some(wanted.address).filter(|address| *address != 0);
        let results = results.filter(|results| address.is_none() || results.reaches());
        let owed = bytes.and_then(|bytes| Some((bytes.owed()?, bytes)));
        let (owed, bytes) =
            owed.ok_or("asked for an argument that it has, or that was not kept")?;
        let length = bytes.part(owed.part).map_or(0, <[u8]>::len);
        let room = if address.is_some() { 0 } else { length };
        let block = usize::try_from(wanted.block).ok();
        let loan = results.zip(block).and_then(|(results, block)| results.loan_buffer(block, room));
        let loan = loan.ok_or("asked for an argument in a block that is out of bounds")?;
        Ok(Self { bytes, owed, address, loan })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.part(self.owed.part).unwrap_or_default()
    }
}

impl Offer {
    /// Returns an error if the worker cannot have made such an offer. `is_task` is `true` if it has
    /// to answer a task that is no chunk.
    pub(super) fn new(
        offered: Offered,
        finished: &Finished<'_>,
        is_task: bool,
        results: Option<&Arc<ResultView>>,
        limit: usize,
    ) -> Result<Self, String> {
        let limit = limit.min(MAX_OFFERED);
        // The table is no part of the value.
        let most = if offered.in_parts { limit.saturating_add(Table::MAX_BYTES) } else { limit };
        let length = usize::try_from(offered.length).ok().filter(|length| *length <= most);
        let block = usize::try_from(offered.block).ok();
        let results = results.filter(|results| results.reaches());
        let loan = results.zip(block).and_then(|(results, block)| results.loan_buffer(block, 0));
        let (Some(length), Some(loan), true) = (length, loan, is_task) else {
            return Err("made an offer that is out of bounds".to_owned());
        };
        let finished = Finished { outcome: Outcome::Value(&[]), ..*finished };
        Ok(Self { offered, length, limit, loan, finished })
    }
}
