//! Buffers that a message has named.
//!
//! All of these check the range against the arena. Whether the sender may name the block at all is
//! for the protocol to check.

use std::io;
use std::sync::Arc;

use brigade_sys::arena::{
    ArenaRef, ArgumentArena, ArgumentView, ForeignArenas, LentBlock, Loan, Protection, ResultArena,
};

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

    /// Returns a buffer in the arena of another worker.
    ///
    /// # Errors
    /// If the arena cannot be opened under `/proc` or mapped, or the buffer exceeds it. Then the
    /// host has to send the bytes.
    pub fn in_foreign(
        arenas: &ForeignArenas,
        arena: ArenaRef,
        offset: usize,
        length: usize,
        guard: Option<Guard>,
    ) -> io::Result<Self> {
        let place = Place::Results { arena, offset, length };
        Ok(Self::lent(arenas.lend(arena, offset, length)?, place, guard))
    }

    fn lent(block: LentBlock, place: Place, guard: Option<Guard>) -> Self {
        Self::whole(Memory::new(Backing::Lent { block, place }, guard))
    }
}
