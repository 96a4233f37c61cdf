//! The locks, atomics and threads of the modules whose protocols are checked by models; see
//! [`brigade_task::backend::sync`].

#[cfg(loom)]
#[path = "sync/loom.rs"]
mod modelled;
#[cfg(not(loom))]
mod parker;

#[cfg(loom)]
pub(crate) use modelled::Parker;
#[cfg(not(loom))]
pub(crate) use parker::Parker;

pub(crate) use brigade_task::backend::sync::{
    AtomicBool, AtomicU32, Mutex, Ordering, ThreadId, current,
};
#[cfg(all(loom, test))]
pub(crate) use brigade_task::backend::sync::{Thread, park};
