//! Values that workers [offer](brigade_sys::arena::Offer) in their own memory; `copy_offered` copies
//! them.

use std::sync::Arc;

use brigade_supervisor::WorkerProcess;
use brigade_sys::arena::{Loan, MOST_OFFERED, ResultView};
use brigade_wire::{Finished, Offered, Outcome};

/// The end of a task whose value is still in its worker's memory.
pub(super) struct Offer {
    pub(super) offered: Offered,
    pub(super) length: usize,
    /// Releases the worker when it is dropped.
    pub(super) loan: Loan,
    /// With an empty value.
    pub(super) finished: Finished<'static>,
}

/// A value to copy; see `copy_offered`.
pub(super) struct ToCopy {
    pub(super) process: Arc<WorkerProcess>,
    pub(super) offer: Offer,
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
        let limit = limit.min(MOST_OFFERED);
        let length = usize::try_from(offered.length).ok().filter(|length| *length <= limit);
        let block = usize::try_from(offered.block).ok();
        let loan = results.zip(block).and_then(|(results, block)| results.loan_buffer(block, 0));
        let (Some(length), Some(loan), true) = (length, loan, is_task) else {
            return Err("made an offer that is out of bounds".to_owned());
        };
        let finished = Finished { outcome: Outcome::Value(&[]), ..*finished };
        Ok(Self { offered, length, loan, finished })
    }
}
