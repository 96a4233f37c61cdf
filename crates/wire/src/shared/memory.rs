//! The memory behind a buffer.

use std::ops::Range;
use std::panic::RefUnwindSafe;
use std::sync::Arc;

use brigade_sys::arena::{FrozenBlock, LentBlock, Loan, SharedBlock};
use brigade_sys::sealed::SealedView;

use crate::location::Location;
use crate::segments::Segment;
use crate::shared::heap::Heap;
use crate::shared::lazy_copy::LazyCopy;

/// A value that is dropped together with the last clone or slice of a buffer.
pub type Guard = Box<dyn Send + Sync>;

/// The memory of one whole buffer, which all its clones and slices share.
pub(crate) struct Memory {
    backing: Backing,
    /// Dropped when the bytes are no longer used.
    _guard: Option<Guard>,
}

/// Memory that nobody writes any more.
#[derive(Debug)]
pub(crate) enum Backing {
    Heap(Heap),
    /// On the host: a block of the arena of arguments.
    Arguments(SharedBlock),
    /// On the host: a block of a worker's arena.
    Results(Loan),
    /// On the host: a block of a worker's arena that it must not read in place.
    Copied(LazyCopy),
    /// On a worker: a block of its own arena.
    Own(FrozenBlock),
    /// On a worker: a block that the host lends to it.
    Lent {
        block: LentBlock,
        name: Segment<'static>,
    },
    /// On a worker: a part of the memory in which all workers have an argument.
    Sealed {
        view: Arc<SealedView>,
        range: Range<usize>,
    },
}

impl Memory {
    pub(crate) fn new(backing: Backing, guard: Option<Guard>) -> Arc<Self> {
        Arc::new(Self { backing, _guard: guard })
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.backing.as_bytes()
    }

    /// Returns the length of the bytes, without looking at them.
    pub(crate) fn len(&self) -> usize {
        match &self.backing {
            Backing::Copied(lazy) => lazy.len(),
            backing => backing.as_bytes().len(),
        }
    }

    /// Returns the memory with the bytes, which is never a [`Backing::Copied`].
    pub(crate) fn backing(&self) -> &Backing {
        match &self.backing {
            Backing::Copied(lazy) => lazy.copy(),
            backing => backing,
        }
    }

    /// Returns the segment by which a message names the whole; `None` for memory that no message
    /// can name.
    pub(crate) fn name(&self) -> Option<Segment<'static>> {
        let location = |offset| Location::of(offset, self.len());
        Some(match self.backing() {
            Backing::Heap(_) | Backing::Copied(_) | Backing::Sealed { .. } => return None,
            Backing::Arguments(block) => Segment::Argument(location(block.offset())),
            Backing::Results(loan) => {
                Segment::Foreign(loan.view().reference(), location(loan.offset()))
            }
            Backing::Own(block) => Segment::Result(location(block.offset())),
            Backing::Lent { name, .. } => *name,
        })
    }

    /// Returns `true` for a part of the memory in which all workers have an argument.
    pub(crate) fn is_sealed(&self) -> bool {
        matches!(self.backing, Backing::Sealed { .. })
    }

    /// Returns the block that this worker has to account for when a message names it.
    pub(crate) fn own(&self) -> Option<&FrozenBlock> {
        match &self.backing {
            Backing::Own(block) => Some(block),
            _ => None,
        }
    }
}

impl Backing {
    #[inline]
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Heap(heap) => heap.as_bytes(),
            Self::Arguments(block) => block.as_bytes(),
            Self::Results(loan) => loan.as_bytes(),
            Self::Copied(lazy) => lazy.copy().as_bytes(),
            Self::Own(block) => block.as_bytes(),
            Self::Lent { block, .. } => block.as_bytes(),
            Self::Sealed { view, range } => &view.bytes()[range.clone()],
        }
    }
}

/// The guard is only dropped, and the bytes never change.
impl RefUnwindSafe for Memory {}

brigade_sys::debug_fields! {
    impl Memory { |it| name: it.name() }
}
