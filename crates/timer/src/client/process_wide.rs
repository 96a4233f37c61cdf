//! The client that all code of a process shares.

use std::mem;
use std::sync::{PoisonError, RwLock, TryLockError};
use std::time::Duration;

use brigade_sys::fork::PerProcess;

use super::TimerClient;
use super::guard::TimerGuard;
use crate::error::ClientError;

type Configured = RwLock<Option<TimerClient>>;

static CLIENT: PerProcess<Configured> = PerProcess::new();

/// Sets the client that [`expires`] uses in this process, or removes it.
///
/// A forked copy of the process starts with the same client; or with none, if another thread was
/// changing it at the moment of the fork.
pub fn configure(client: impl Into<Option<TimerClient>>) {
    let client = client.into();
    let mut configured = configured().write().unwrap_or_else(PoisonError::into_inner);
    let before = mem::replace(&mut *configured, client);
    drop(configured);
    drop(before);
}

/// Calls [`TimerClient::expires`] on the client that [`configure`] has set.
///
/// # Errors
/// [`ClientError::NotConfigured`] if none is set, and those of [`TimerClient::expires`].
pub fn expires(after: Duration) -> Result<TimerGuard, ClientError> {
    let client = configured().read().unwrap_or_else(PoisonError::into_inner).clone();
    client.ok_or(ClientError::NotConfigured)?.expires(after)
}

fn configured() -> &'static Configured {
    CLIENT.get_or_make(|parents| RwLock::new(parents.and_then(inherited)))
}

/// Returns the parent's client. The parent's lock may be held forever in this copy, so it is only
/// tried.
fn inherited(parents: &Configured) -> Option<TimerClient> {
    match parents.try_read() {
        Ok(client) => client.clone(),
        Err(TryLockError::Poisoned(client)) => client.into_inner().clone(),
        Err(TryLockError::WouldBlock) => None,
    }
}
