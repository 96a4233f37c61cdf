//! Which threads are the pool's own, and what must not be done there.

use std::cell::Cell;

use super::Shared;

thread_local! {
    /// The pool whose thread this is, by the address of what its threads share.
    static OWNER: Cell<usize> = const { Cell::new(0) };
    static ROLE: Cell<Role> = const { Cell::new(Role::Other) };
}

/// What a thread is to a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A user's thread, or one that drives nothing.
    Other,
    /// It handles answers, and runs code of users that has nowhere else to run.
    Collector,
    /// Deadlines, deaths or starts depend on it.
    Driver,
}

/// The current thread has this role until it ends.
pub(super) fn take_role(role: Role) {
    ROLE.set(role);
}

/// Whether code of users is to run elsewhere.
pub(super) fn must_not_run_foreign_code() -> bool {
    ROLE.get() == Role::Driver
}

/// Whether others wait when this thread does something that takes a while.
pub(super) fn is_depended_on() -> bool {
    ROLE.get() != Role::Other
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
