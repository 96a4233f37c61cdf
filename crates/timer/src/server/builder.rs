//! How a server is set up.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use brigade_sys::fork::Origin;
use brigade_sys::request_socket::{Address, Listener};
use brigade_sys::wait::Waker;

use super::event_loop::{EventLoop, Hooks};
use super::{Shared, TimerServer};
use crate::client::TimerClient;
use crate::error::ServerError;
use crate::event::TimerEvent;
use crate::ladder::Ladder;
use crate::reaper::{Expiry, Reaper, SignalReaper};

/// Settings of a [`TimerServer`].
#[must_use = "nothing listens before `build`"]
pub struct TimerServerBuilder {
    address: Option<Address>,
    hooks: Hooks,
    any_user: bool,
}

impl fmt::Debug for TimerServerBuilder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, any_user, .. } = self;
        let mut out = out.debug_struct("TimerServerBuilder");
        out.field("address", address).field("any_user", any_user).finish_non_exhaustive()
    }
}

impl Default for TimerServerBuilder {
    fn default() -> Self {
        let hooks = Hooks {
            reaper: Box::new(SignalReaper::default()),
            before_reap: Vec::new(),
            on_event: Vec::new(),
        };
        Self { address: None, hooks, any_user: false }
    }
}

impl TimerServerBuilder {
    /// Listens at a path of the file system, for clients that find it by name. Who may connect is said by the permissions
    /// of the folder. By default the server has a random name without a file, which its clients are told.
    pub fn path(mut self, path: impl Into<PathBuf>) -> Self {
        self.address = Some(Address::Path(path.into()));
        self
    }

    /// Sends these signals to workers that overrun and whose requests have no ladder; SIGKILL by default.
    pub fn ladder(self, ladder: Ladder) -> Self {
        self.reaper(SignalReaper::new(ladder))
    }

    /// Has another reaper deal with workers that overrun.
    pub fn reaper(mut self, reaper: impl Reaper + 'static) -> Self {
        self.hooks.reaper = Box::new(reaper);
        self
    }

    /// Calls this with a worker and its expired timers before each call of the reaper, on the server's thread: to take a
    /// stack of it, say. A panic in it is contained, and the reaper called all the same. What
    /// [`on_event`](Self::on_event) says of time and clients holds here, too.
    pub fn before_reap(mut self, hook: impl FnMut(&Expiry<'_>) + Send + 'static) -> Self {
        self.hooks.before_reap.push(Box::new(hook));
        self
    }

    /// Calls this with each event, on the server's thread. A panic in it is contained.
    ///
    /// While it runs no deadline is served, nor while the subscriber of `tracing` takes the same event: hand on what takes
    /// long. A client of this server must not be used in it: nobody would answer, and it would fail after 5 s.
    pub fn on_event(mut self, observer: impl FnMut(&TimerEvent) + Send + 'static) -> Self {
        self.hooks.on_event.push(Box::new(observer));
        self
    }

    /// Serves processes of all users. By default only those of the server's own, and root's.
    pub fn any_user(mut self) -> Self {
        self.any_user = true;
        self
    }

    /// Makes the server; it listens, and serves once it is started.
    ///
    /// # Errors
    /// [`ServerError::Listen`], [`ServerError::Setup`].
    pub fn build(self) -> Result<TimerServer, ServerError> {
        let address = match self.address {
            Some(address) => address,
            None => Address::Abstract(random_name().map_err(ServerError::Setup)?),
        };
        let listener = Listener::bind(&address)
            .map_err(|source| ServerError::Listen { address: address.to_string(), source })?;
        let shared = Arc::new(Shared {
            waker: Waker::new().map_err(ServerError::Setup)?,
            stopping: AtomicBool::new(false),
            last_progress: AtomicU64::new(0),
        });
        let event_loop = EventLoop::new(listener, Arc::clone(&shared), self.hooks, self.any_user)
            .map_err(ServerError::Setup)?;
        let event_loop = Arc::new(Mutex::new(event_loop));
        let (client, origin) = (TimerClient::at(address), Origin::here());
        Ok(TimerServer { shared, event_loop, client, thread: None, origin })
    }
}

fn random_name() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(format!("brigade-timer-{:032x}", u128::from_ne_bytes(bytes)))
}
