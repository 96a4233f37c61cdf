//! Buffers that a message has named.
//!
//! All of these check the range against the arena. Whether the sender may name the block at all is
//! for the protocol to check.

use std::ops::Range;
use std::sync::Arc;

use brigade_sys::arena::{ArgumentArena, LentBlock, Loan, Protection, ResultView};
use brigade_sys::sealed::SealedView;

use crate::segments::Segment;
use crate::shared::ALIGNMENT;
use crate::shared::buf::SharedBuf;
use crate::shared::lazy_copy::LazyCopy;
use crate::shared::memory::{Backing, Guard, Memory};

/// On the host.
impl SharedBuf {
    /// Takes a buffer that a worker has named. Dropping the last clone or slice releases it.
    ///
    /// At [`Protection::Copied`] the bytes are copied before anybody looks at them, to `copies` if
    /// it has room and otherwise to the heap, and then the worker gets its memory back.
    pub fn from_loan(
        loan: Loan,
        protection: Protection,
        copies: Option<&Arc<ArgumentArena>>,
    ) -> Self {
        Self::of(match protection {
            Protection::Copied => Backing::Copied(LazyCopy::new(loan, copies)),
            _ => Backing::Results(loan),
        })
    }

    /// Returns the worker's arena in which the buffer lies, if it does.
    pub fn results(&self) -> Option<&ResultView> {
        match self.memory().backing() {
            Backing::Results(loan) => Some(loan.view()),
            _ => None,
        }
    }
}

/// On a worker.
impl SharedBuf {
    /// Returns a buffer that the host lends under this name. `guard` is dropped together with the
    /// last clone or slice.
    pub fn lent(block: LentBlock, name: Segment<'static>, guard: Option<Guard>) -> Self {
        Self::whole(Memory::new(Backing::Lent { block, name }, guard))
    }

    /// Returns a buffer in memory that all workers have mapped, and which it keeps; `None` if it
    /// exceeds the memory or is not aligned.
    pub fn in_sealed(view: &Arc<SealedView>, range: Range<usize>) -> Option<Self> {
        let bytes = view.bytes().get(range.clone())?;
        if !bytes.as_ptr().addr().is_multiple_of(ALIGNMENT) {
            return None;
        }
        let view = Arc::clone(view);
        Some(Self::of(Backing::Sealed { view, range }))
    }
}
