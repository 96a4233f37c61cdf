//! The client that a process has chosen for all its code.

use std::mem;
use std::sync::{PoisonError, RwLock, TryLockError};
use std::time::Duration;

use brigade_sys::fork::PerProcess;

use super::TimerClient;
use super::guard::TimerGuard;
use crate::error::ClientError;

type Chosen = RwLock<Option<TimerClient>>;

static CLIENT: PerProcess<Chosen> = PerProcess::new();

/// Chooses the client that [`expires`] uses in this process, or none.
///
/// A copy of the process that `fork` has made begins with the same client; or with none, if another thread was about to
/// choose one at that moment.
pub fn configure(client: impl Into<Option<TimerClient>>) {
    let client = client.into();
    let mut chosen = chosen().write().unwrap_or_else(PoisonError::into_inner);
    let before = mem::replace(&mut *chosen, client);
    drop(chosen);
    drop(before);
}

/// [`TimerClient::expires`] of the client that was chosen with [`configure`].
///
/// # Errors
/// [`ClientError::NotConfigured`] without one.
pub fn expires(after: Duration) -> Result<TimerGuard, ClientError> {
    let client = chosen().read().unwrap_or_else(PoisonError::into_inner).clone();
    client.ok_or(ClientError::NotConfigured)?.expires(after)
}

fn chosen() -> &'static Chosen {
    CLIENT.get_or_make(|parents| RwLock::new(parents.and_then(inherited)))
}

/// What the parent had chosen. Its lock may be held for ever.
fn inherited(parents: &Chosen) -> Option<TimerClient> {
    match parents.try_read() {
        Ok(client) => client.clone(),
        Err(TryLockError::Poisoned(client)) => client.into_inner().clone(),
        Err(TryLockError::WouldBlock) => None,
    }
}
