//! A handle that ends its task when it is dropped.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use brigade_pool::TaskError;
use serde::de::DeserializeOwned;

use super::handle::ClusterHandle;

/// A handle that ends its task when it is dropped; returned by [`ClusterHandle::abort_on_drop`].
///
/// Dropping it does not block. Nothing happens if the outcome has arrived.
#[derive(Debug)]
#[must_use = "dropping it ends the task"]
pub struct ClusterAbortOnDrop<R> {
    handle: ClusterHandle<R>,
    aborts: bool,
}

impl<R> ClusterAbortOnDrop<R> {
    pub(super) fn new(handle: ClusterHandle<R>) -> Self {
        Self { handle, aborts: true }
    }

    /// Returns the handle. The task then continues if it is dropped.
    pub fn into_handle(mut self) -> ClusterHandle<R> {
        self.aborts = false;
        self.handle.duplicate()
    }
}

impl<R: DeserializeOwned + 'static> Future for ClusterAbortOnDrop<R> {
    type Output = Result<R, TaskError>;

    /// # Panics
    /// If polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.handle).poll(context)
    }
}

impl<R> Drop for ClusterAbortOnDrop<R> {
    fn drop(&mut self) {
        if self.aborts {
            self.handle.end(true);
        }
    }
}
