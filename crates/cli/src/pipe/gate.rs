//! Bounds the number of blocks that exist at once, and so their memory.

use std::io;
use std::sync::Arc;

use brigade::runner::InputBlock;
use parking_lot::{Condvar, Mutex};

/// Hands out a bounded number of permits.
#[derive(Debug, Clone)]
pub(super) struct Gate(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    out: usize,
    most: usize,
    /// `true` if nobody wants blocks any more.
    is_closed: bool,
}

/// The right to hold a block. It is returned when dropped.
#[derive(Debug)]
struct Permit(Gate);

impl Gate {
    pub(super) fn new(most: usize) -> Self {
        let state = Mutex::new(State { out: 0, most, is_closed: false });
        Self(Arc::new(Shared { state, changed: Condvar::new() }))
    }

    /// Copies a block into memory, when there is a permit. Returns `None` if the gate is closed.
    pub(super) fn block(&self, parts: &[&[u8]], identity: u64) -> Option<io::Result<InputBlock>> {
        let mut state = self.0.state.lock();
        while !state.is_closed && state.out >= state.most {
            self.0.changed.wait(&mut state);
        }
        if state.is_closed {
            return None;
        }
        state.out += 1;
        drop(state);
        let permit = Permit(self.clone());
        loop {
            match InputBlock::new(parts, identity) {
                Ok(block) => return Some(Ok(block.permit(permit))),
                // Descriptors or memory come back with another block.
                Err(_) if permit.wait_for_another() => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Ends all waits.
    pub(super) fn close(&self) {
        self.0.state.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl Permit {
    /// Waits until another permit is returned, and with it what its block took. Returns `false` if
    /// there is no other, or the gate is closed.
    fn wait_for_another(&self) -> bool {
        let Shared { state, changed } = &*self.0.0;
        let mut state = state.lock();
        let before = state.out;
        if before <= 1 {
            return false;
        }
        while state.out >= before && !state.is_closed {
            changed.wait(&mut state);
        }
        !state.is_closed
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.0.state.lock().out -= 1;
        self.0.0.changed.notify_all();
    }
}
