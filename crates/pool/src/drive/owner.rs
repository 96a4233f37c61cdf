//! Which threads are the pool's own, and therefore must not wait for it.

use std::cell::Cell;

use super::Shared;

thread_local! {
    /// The pool whose thread this is, by the address of what its threads share.
    static OWNER: Cell<usize> = const { Cell::new(0) };
}

impl Shared {
    /// Marks the current thread as one of the pool's; says whose it was before.
    pub(super) fn own_this_thread(&self) -> usize {
        OWNER.replace(std::ptr::from_ref(self).addr())
    }

    /// Undoes `own_this_thread`.
    pub(super) fn give_back_this_thread(owner: usize) {
        OWNER.set(owner);
    }

    /// Whether the current thread is one of the pool's, which must not wait for the pool.
    pub(super) fn is_own_thread(&self) -> bool {
        OWNER.get() == std::ptr::from_ref(self).addr()
    }
}
