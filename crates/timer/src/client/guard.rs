//! A deadline for a section of code.

use brigade_sys::fork::Origin;

use super::TimerClient;
use crate::error::ClientError;
use crate::scope::Scope;

/// A deadline that is released when this is dropped, however the section is left.
///
/// In a copy of the process that `fork` has made nothing is released: the deadline is the original's.
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

    /// What the timer is called.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Releases the deadline, and tells whether that worked.
    ///
    /// # Errors
    /// See [`ClientError`]; the deadline may then still stand.
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
            // A server that is gone kills nobody; one that is stalled may yet.
            tracing::warn!(%error, "a deadline could not be released");
        }
    }
}
