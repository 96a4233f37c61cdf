//! Buffers that a message has named.
//!
//! All of these check the range against the arena. Whether the sender may name the block at all is
//! for the protocol to check.

use std::ops::Range;
use std::sync::Arc;

use brigade_sys::arena::{
    ArgumentArena, ArgumentView, ForeignArena, LentBlock, Loan, Protection, ResultArena, ResultView,
};
use brigade_sys::sealed::SealedView;

use crate::shared::ALIGNMENT;
use crate::shared::buf::SharedBuf;
use crate::shared::lazy_copy::LazyCopy;
use crate::shared::memory::{Backing, Guard, Memory};
use crate::shared::place::Place;

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

/// On a worker. `guard` is dropped together with the last clone or slice.
impl SharedBuf {
    /// Returns a buffer in the arena of arguments; `None` if it exceeds the arena.
    pub fn in_argument(
        arena: &ArgumentView,
        offset: usize,
        length: usize,
        guard: Option<Guard>,
    ) -> Option<Self> {
        let place = Place::Arguments { offset, length };
        Some(Self::lent(arena.lend(offset, length)?, place, guard))
    }

    /// Returns a buffer in the arena of this worker, which has come back to it; `None` if it
    /// exceeds the arena.
    pub fn in_own_results(
        arena: &ResultArena,
        offset: usize,
        length: usize,
        guard: Option<Guard>,
    ) -> Option<Self> {
        let place = Place::Results { arena: arena.reference(), offset, length };
        Some(Self::lent(arena.lend(offset, length)?, place, guard))
    }

    /// Returns a buffer in the arena of another worker; `None` if it exceeds the arena.
    pub fn in_foreign(
        arena: &ForeignArena,
        offset: usize,
        length: usize,
        guard: Option<Guard>,
    ) -> Option<Self> {
        let place = Place::Results { arena: arena.reference(), offset, length };
        Some(Self::lent(arena.lend(offset, length)?, place, guard))
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

    fn lent(block: LentBlock, place: Place, guard: Option<Guard>) -> Self {
        Self::whole(Memory::new(Backing::Lent { block, place }, guard))
    }
}
