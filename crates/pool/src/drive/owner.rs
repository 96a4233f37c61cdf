//! Marks the pool's own threads and restricts what they do.

use std::cell::Cell;

use super::shared::Shared;

thread_local! {
    /// The pool that owns the current thread, as the address of its shared state.
    static OWNER: Cell<usize> = const { Cell::new(0) };
    static ROLE: Cell<Role> = const { Cell::new(Role::Other) };
}

/// The role of a thread in a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A caller's thread, or one that drives nothing.
    Other,
    /// The thread that collects outcomes and runs user code that has no other thread.
    Collector,
    /// A thread that deadlines, deaths or starts depend on.
    Driver,
}

/// Sets the role of the current thread until it ends.
pub(super) fn take_role(role: Role) {
    ROLE.set(role);
}

/// Returns `true` if user code has to run on another thread.
pub(super) fn must_not_run_user_code() -> bool {
    ROLE.get() == Role::Driver
}

/// Returns `true` on the collector thread of a pool.
pub(super) fn is_collector() -> bool {
    ROLE.get() == Role::Collector
}

/// Returns `true` if other threads wait while this one does slow work.
pub(super) fn is_depended_on() -> bool {
    ROLE.get() != Role::Other
}

impl Shared {
    /// Marks the current thread as owned by this pool until it ends.
    pub(super) fn own_this_thread(&self) {
        OWNER.set(std::ptr::from_ref(self).addr());
    }

    /// Marks the current thread as owned by this pool until the returned value is dropped.
    pub(super) fn borrow_this_thread(&self) -> impl Drop + use<> {
        struct Previous(usize);
        impl Drop for Previous {
            fn drop(&mut self) {
                OWNER.set(self.0);
            }
        }
        Previous(OWNER.replace(std::ptr::from_ref(self).addr()))
    }

    /// Returns `true` if the current thread is owned by this pool and therefore must not wait for
    /// it.
    pub(super) fn is_own_thread(&self) -> bool {
        OWNER.get() == std::ptr::from_ref(self).addr()
    }
}
