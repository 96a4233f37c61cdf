//! The locks, atomics and threads of the modules whose protocols are checked by models.
//!
//! In the models (`cargo xtask loom`) they are loom's, so that the code itself runs in every
//! interleaving. Everywhere else they are the ordinary ones.

#[cfg(loom)]
#[path = "sync/loom.rs"]
#[expect(missing_docs, reason = "only models see it")]
mod modelled;

#[cfg(not(loom))]
pub use brigade_sys::{
    guarded::{Guard, Guarded},
    sync::Mutex,
};
#[cfg(not(loom))]
pub use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread::{Thread, ThreadId, current, park, park_timeout},
};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
#[cfg(loom)]
pub use loom::thread::ThreadId;
#[cfg(loom)]
pub use modelled::{Guard, Guarded, Mutex, Thread, current, park, park_timeout};
