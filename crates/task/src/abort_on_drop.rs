//! A handle that ends its task when it is dropped.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use serde::de::DeserializeOwned;

use crate::backend::Facts;
use crate::error::TaskError;
use crate::handle::Handle;

/// A handle that ends its task when it is dropped; returned by [`Handle::abort_on_drop`].
///
/// A task that has not started is cancelled, and the worker of a running one is killed and
/// replaced. Nothing happens if the outcome has arrived. Dropping it does not block.
#[must_use = "dropping it ends the task"]
pub struct AbortOnDrop<R, F: Facts> {
    handle: Handle<R, F>,
    aborts: bool,
}

impl<R, F: Facts> AbortOnDrop<R, F> {
    pub(crate) fn new(handle: Handle<R, F>) -> Self {
        Self { handle, aborts: true }
    }

    /// Returns the handle. The task then continues if it is dropped.
    pub fn into_handle(mut self) -> Handle<R, F> {
        self.aborts = false;
        self.handle.duplicate()
    }
}

impl<R: DeserializeOwned + 'static, F: Facts> Future for AbortOnDrop<R, F> {
    type Output = Result<R, TaskError>;

    /// # Panics
    /// If polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.handle).poll(context)
    }
}

impl<R, F: Facts> Drop for AbortOnDrop<R, F> {
    fn drop(&mut self) {
        if self.aborts {
            self.handle.request_kill();
        }
    }
}

brigade_sys::debug_fields!(impl<R, F: Facts> AbortOnDrop<R, F> { handle });
