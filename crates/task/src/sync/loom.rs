//! Stands in for what loom lacks, or offers in another form.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use loom::sync::{self, MutexGuard, Notify};
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

/// The shared value of `brigade_sys::guarded`, which has models of its own there.
#[derive(Debug)]
pub struct Guarded<T, S>(Arc<(T, Mutex<S>)>);

/// Access to the part behind the lock.
pub struct Guard<'a, T, S>(MutexGuard<'a, S>, PhantomData<T>);

impl<T, S> Guarded<T, S> {
    pub fn new(open: T, locked: S) -> Self {
        Self(Arc::new((open, Mutex::new(locked))))
    }

    pub fn lock(this: &Self) -> Guard<'_, T, S> {
        Guard(this.0.1.lock(), PhantomData)
    }

    pub fn is_only_owner(this: &Self) -> bool {
        Arc::strong_count(&this.0) == 1
    }

    pub fn get_mut(_: &mut Self) -> Option<&mut S> {
        // Loom's mutex gives no access without locking it.
        None
    }

    pub fn share(this: &mut Self) -> Self {
        this.clone()
    }
}

impl<T, S> Clone for Guarded<T, S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T, S> Deref for Guarded<T, S> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.0
    }
}

impl<T, S> Deref for Guard<'_, T, S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<T, S> DerefMut for Guard<'_, T, S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.0
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
