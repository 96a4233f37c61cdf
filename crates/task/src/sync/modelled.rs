//! Stands in for what loom lacks, or offers in another form.

use std::sync::Arc;
use std::time::Duration;

pub use loom::sync::MutexGuard;
use loom::sync::{self, Notify};
use loom::thread::{self, ThreadId};

/// A mutex of loom with the interface of `brigade_sys::sync::Mutex`.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("a model ends at its first panic")
    }
}

/// A thread that can be unparked. Loom's own `unpark` wakes a thread from whatever it waits for,
/// even from a mutex that is locked.
#[derive(Debug, Clone)]
pub struct Thread {
    id: ThreadId,
    token: Arc<Notify>,
}

loom::thread_local! {
    static TOKEN: Arc<Notify> = Arc::new(Notify::new());
}

impl Thread {
    pub fn id(&self) -> ThreadId {
        self.id
    }

    pub fn unpark(&self) {
        self.token.notify();
    }
}

pub fn current() -> Thread {
    Thread { id: thread::current().id(), token: TOKEN.with(Arc::clone) }
}

pub fn park() {
    current().token.wait();
}

pub fn park_timeout(_: Duration) {
    unreachable!("models wait without a deadline");
}
