//! Things with descriptors for which one thread waits, and which others add.
//!
//! A thread that adds one makes the kernel watch it, and does not wake the waiting thread. When the
//! kernel reports a token that the waiting thread does not know, it [takes](Watch::take_new) what
//! is new: a thing is in the list before its descriptors can be reported, as both happens under the
//! lock of the list.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use brigade_sys::poller::Poller;
use brigade_sys::sync::Mutex;

/// Things that one thread waits for.
pub(crate) struct WaitSet<T> {
    pub(crate) poller: Poller,
    new: Mutex<Vec<(u64, T)>>,
    /// The next token. Each thing has two.
    next: AtomicU64,
    /// The reason why the last ones are not watched.
    failure: Mutex<Option<io::Error>>,
}

impl<T> WaitSet<T> {
    pub(crate) fn new() -> io::Result<Self> {
        let poller = Poller::new()?;
        Ok(Self {
            poller,
            new: Mutex::default(),
            next: AtomicU64::new(1),
            failure: Mutex::default(),
        })
    }

    /// Adds a thing. `watch` adds its descriptors with the given token, which is odd, and the one
    /// after it. Returns `true` if the thread has to be woken, because that failed.
    #[must_use]
    pub(crate) fn add(
        &self,
        thing: T,
        watch: impl FnOnce(&T, &Poller, u64) -> io::Result<()>,
    ) -> bool {
        let token = self.token();
        let mut new = self.new.lock();
        let watched = watch(&thing, &self.poller, token);
        new.push((token, thing));
        drop(new);
        watched.map_err(|error| *self.failure.lock() = Some(error)).is_err()
    }

    /// Returns the token for a thing that is not in the list.
    pub(crate) fn token(&self) -> u64 {
        self.next.fetch_add(2, Ordering::Relaxed)
    }

    /// Takes what was added since the last time, with the tokens.
    pub(crate) fn take_new(&self) -> Vec<(u64, T)> {
        std::mem::take(&mut *self.new.lock())
    }

    /// Returns an error if a thing is not watched.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.failure.lock().take().map_or(Ok(()), Err)
    }
}
