//! A handle that ends its task when it is dropped.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use serde::de::DeserializeOwned;

use crate::error::TaskError;
use crate::handle::Handle;

/// A handle that ends its task when it is dropped; returned by [`Handle::abort_on_drop`].
///
/// A task that has not started is cancelled, and the worker of a running one is killed and
/// replaced. Nothing happens if the outcome has arrived.
#[derive(Debug)]
#[must_use = "dropping it ends the task"]
pub struct AbortOnDrop<R> {
    handle: Handle<R>,
    aborts: bool,
}

impl<R> AbortOnDrop<R> {
    pub(crate) fn new(handle: Handle<R>) -> Self {
        Self { handle, aborts: true }
    }

    /// Returns the handle. The task then continues if it is dropped.
    pub fn into_handle(mut self) -> Handle<R> {
        self.aborts = false;
        self.handle.duplicate()
    }
}

impl<R: DeserializeOwned + 'static> Future for AbortOnDrop<R> {
    type Output = Result<R, TaskError>;

    /// # Panics
    /// If polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.handle).poll(context)
    }
}

impl<R> Drop for AbortOnDrop<R> {
    fn drop(&mut self) {
        if self.aborts {
            self.handle.kill();
        }
    }
}
