//! The locks, atomics and threads of the modules whose protocols are checked by models.
//!
//! In the models (`cargo xtask loom`) they are loom's, so that the code itself runs in every
//! interleaving. Everywhere else they are the ordinary ones.

#[cfg(all(loom, test))]
mod modelled;
#[cfg(not(all(loom, test)))]
mod parker;

#[cfg(not(all(loom, test)))]
pub(crate) use brigade_sys::{
    guarded::{Guard, Guarded},
    sync::Mutex,
};
#[cfg(not(all(loom, test)))]
pub(crate) use parker::Parker;
#[cfg(not(all(loom, test)))]
pub(crate) use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread::{Thread, ThreadId, current, park, park_timeout},
};

#[cfg(all(loom, test))]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
#[cfg(all(loom, test))]
pub(crate) use loom::thread::ThreadId;
#[cfg(all(loom, test))]
pub(crate) use modelled::{Guard, Guarded, Mutex, Parker, Thread, current, park, park_timeout};
