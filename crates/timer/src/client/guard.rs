//! A guard that holds a deadline for a section of code.

use brigade_sys::fork::Origin;

use super::TimerClient;
use crate::error::ClientError;
use crate::scope::Scope;

/// A deadline that is released when the guard is dropped, however the section is left.
///
/// A forked copy of the process releases nothing: the deadline belongs to the original.
#[derive(Debug)]
#[must_use = "the deadline is released when the guard is dropped"]
pub struct TimerGuard {
    client: TimerClient,
    scope: Scope,
    released: bool,
    origin: Origin,
}

impl TimerGuard {
    pub(super) fn new(client: TimerClient, scope: Scope) -> Self {
        Self { client, scope, released: false, origin: Origin::here() }
    }

    /// Returns the timer's scope.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Releases the deadline and reports errors, which a drop can only log.
    ///
    /// # Errors
    /// See [`ClientError`]. On error, the deadline may still be armed.
    pub fn release(mut self) -> Result<(), ClientError> {
        self.released = true;
        if !self.origin.is_here() {
            return Ok(());
        }
        self.client.release(self.scope.clone())
    }
}

impl Drop for TimerGuard {
    fn drop(&mut self) {
        if !self.released
            && self.origin.is_here()
            && let Err(error) = self.client.release(self.scope.clone())
        {
            // A server that is gone kills nobody; one that is stalled may still do so.
            tracing::warn!(%error, "cannot release a deadline");
        }
    }
}
