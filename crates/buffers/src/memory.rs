//! The memory behind a buffer.

use std::fmt;
use std::panic::RefUnwindSafe;
use std::sync::Arc;

use crate::heap::Heap;
use crate::place::Place;

/// The memory of one whole buffer, which all its clones and slices share.
pub(crate) struct Memory {
    backing: Backing,
    /// Dropped after the bytes are no longer used.
    _guard: Option<Box<dyn Send + Sync>>,
}

/// Memory that nobody writes any more.
#[derive(Debug)]
pub(crate) enum Backing {
    Heap(Heap),
}

impl Memory {
    pub(crate) fn new(backing: Backing, guard: Option<Box<dyn Send + Sync>>) -> Arc<Self> {
        Arc::new(Self { backing, _guard: guard })
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match &self.backing {
            Backing::Heap(heap) => heap.as_bytes(),
        }
    }

    pub(crate) fn place(&self) -> Place {
        match &self.backing {
            Backing::Heap(_) => Place::Heap,
        }
    }
}

/// The guard is only dropped, and the bytes never change.
impl RefUnwindSafe for Memory {}

impl fmt::Debug for Memory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Memory").field("place", &self.place()).finish_non_exhaustive()
    }
}
