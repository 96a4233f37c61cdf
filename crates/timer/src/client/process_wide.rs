//! The client that a process has chosen for all its code.

use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use super::TimerClient;
use super::guard::TimerGuard;
use crate::error::ClientError;

static CLIENT: RwLock<Option<TimerClient>> = RwLock::new(None);

/// Chooses the client that [`expires`] uses in this process, or none.
pub fn configure(client: impl Into<Option<TimerClient>>) {
    *CLIENT.write().unwrap_or_else(PoisonError::into_inner) = client.into();
}

/// [`TimerClient::expires`] of the client that was chosen with [`configure`].
///
/// # Errors
/// [`ClientError::NotConfigured`] without one.
pub fn expires(after: Duration) -> Result<TimerGuard, ClientError> {
    let client = CLIENT.read().unwrap_or_else(PoisonError::into_inner).clone();
    client.ok_or(ClientError::NotConfigured)?.expires(after)
}
