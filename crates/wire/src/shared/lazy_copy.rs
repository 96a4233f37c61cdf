//! A buffer in a worker's memory that is copied before anybody looks at it.
//!
//! The copy is made by the first thread that needs the bytes, because the thread that receives the
//! message holds a lock. Until then the worker may change the bytes; afterwards nobody can, and the
//! worker has its memory back.

use std::sync::{Arc, OnceLock};

use brigade_sys::arena::{ArgumentArena, Loan};
use brigade_sys::sync::Mutex;

use crate::shared::heap::Heap;
use crate::shared::memory::Backing;

/// See the [module](self).
pub(crate) struct LazyCopy {
    length: usize,
    /// `None` once the bytes are copied.
    loan: Mutex<Option<Loan>>,
    /// The arena for the copy, if it has room.
    arena: Option<Arc<ArgumentArena>>,
    copy: OnceLock<Box<Backing>>,
}

impl LazyCopy {
    pub(crate) fn new(loan: Loan, arena: Option<&Arc<ArgumentArena>>) -> Self {
        Self {
            length: loan.len(),
            loan: Mutex::new(Some(loan)),
            arena: arena.cloned(),
            copy: OnceLock::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Returns the copy, after making it if there is none.
    pub(crate) fn copy(&self) -> &Backing {
        self.copy.get_or_init(|| {
            // Taken once, and dropped after the copy.
            let loan = self.loan.lock().take();
            let Some(loan) = loan else {
                return Box::new(Backing::Heap(Heap::zeroed(self.length)));
            };
            let block = self.arena.as_ref().and_then(|arena| arena.copy(&loan));
            Box::new(block.map_or_else(
                || {
                    let mut heap = Heap::zeroed(self.length);
                    loan.copy_to_slice(heap.as_mut_bytes());
                    Backing::Heap(heap)
                },
                Backing::Arguments,
            ))
        })
    }
}

brigade_sys::debug_fields! {
    impl LazyCopy { length }
}
