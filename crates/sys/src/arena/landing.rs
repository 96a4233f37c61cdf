//! Memory of a worker to which the host copies a large argument that it has kept.
//!
//! An argument in the arena is copied twice. Its memory is fresh if it is large, and clearing that
//! takes longer than both copies. An argument that the host has kept is copied once, when its task
//! begins:
//!
//! ```text
//! host                                         worker
//! sends the task without its argument      --> takes memory, and a block, and exports it
//! copies the argument, or refuses          <-- names the block and the memory
//! releases the block                       --> [uses the argument]
//! ```
//! If the host may not write to the worker's own memory, the block has the room, from where the
//! worker copies the argument.

use std::sync::Arc;

use super::budget::WhenFull;
use super::control;
use super::loan::{Loan, ResultView};
use super::reach::wait_for_release;
use super::result::ResultArena;
use super::result_block::FrozenBlock;
use crate::numbers::{Numbers, Unit};

/// Memory for an argument, as its worker sees it.
#[derive(Debug)]
pub struct Landing {
    block: FrozenBlock,
    /// Empty, with the capacity, if the host may write to it.
    memory: Option<Numbers>,
    length: usize,
    unit: Unit,
}

impl ResultArena {
    /// Returns memory for an argument of `length` bytes, in numbers of this size, which is named by
    /// a message that must follow. Returns `None` if there is no memory. `is_known` is `false` in a
    /// copy of the worker, whose memory the host would look for in the worker's process.
    pub fn landing(self: &Arc<Self>, length: usize, unit: Unit, is_known: bool) -> Option<Landing> {
        let memory = if is_known && self.is_reached() {
            Some(Numbers::try_with_room(unit, length).ok()?)
        } else {
            None
        };
        let room = if memory.is_some() { 0 } else { length };
        let block = self.allocate_block(room, WhenFull::Exceed).ok()?.freeze().ok()?;
        block.export();
        Some(Landing { block, memory, length, unit })
    }
}

impl Landing {
    /// Returns the offset of the block for the message.
    pub fn offset(&self) -> usize {
        self.block.offset()
    }

    /// Returns the address of the memory for the message; 0 if the argument belongs into the block.
    pub fn address(&self) -> u64 {
        self.memory
            .as_ref()
            .map_or(0, |memory| memory.as_bytes().as_ptr().expose_provenance() as u64)
    }

    /// Blocks until the host has copied the argument. Returns `None` if it cannot, and will be able
    /// to if it is asked again.
    pub fn wait(self) -> Option<Numbers> {
        let Self { block, memory, length, unit } = self;
        let arena = Arc::clone(block.arena());
        wait_for_release(&block);
        match memory {
            None => Numbers::copy_of(block.as_bytes(), unit),
            Some(mut memory) if arena.is_reached() => {
                // SAFETY: it has the capacity, and the host, which does not refuse, has filled it.
                unsafe { memory.set_byte_len(length) };
                Some(memory)
            }
            Some(_) => None,
        }
    }
}

impl Loan {
    /// Copies bytes to the block of a [`Landing`]. Returns `false` if it has another length.
    pub fn fill(&self, bytes: &[u8]) -> bool {
        if bytes.len() != self.len() {
            return false;
        }
        // SAFETY: the host has no reference to these bytes unless the worker lies, and named the
        // block before; then it relies on the worker as with all references to its blocks.
        unsafe { self.view().mapping().write(self.offset(), bytes) };
        true
    }
}

impl ResultView {
    /// Finds out whether this process reaches the memory of the worker, before the worker is sent
    /// the first task whose argument was kept.
    pub fn reach(&self) {
        self.reader().decide(control::offers(self.mapping()));
    }

    /// Returns `true` if this process has said that it reaches the memory of the worker.
    pub fn reaches(&self) -> bool {
        self.reader().reaches()
    }
}
