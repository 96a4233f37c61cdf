//! The settings of a server.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use brigade_sys::fork::Origin;
use brigade_sys::random;
use brigade_sys::request_socket::{Address, Listener, check_kernel};
use brigade_sys::sync::Mutex;
use brigade_sys::wait::Waker;

use super::event_loop::{EventLoop, Hooks};
use super::{Shared, TimerServer};
use crate::client::TimerClient;
use crate::error::ServerError;
use crate::escalation::Escalation;
use crate::event::TimerEvent;
use crate::reaper::{Expiry, Reaper, SignalReaper};

/// Settings of a [`TimerServer`].
#[must_use = "nothing listens before `build`"]
pub struct TimerServerBuilder {
    address: Option<Address>,
    hooks: Hooks,
    any_user: bool,
}

brigade_sys::debug_fields! {
    impl TimerServerBuilder { address, any_user }
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

brigade_sys::setters! {
    impl TimerServerBuilder;

    /// Listens at a path in the file system, where clients can find it by name. The permissions of
    /// the folder decide who may connect. By default the server has a random abstract name without
    /// a file, and only holders of a client know it.
    pub fn path(self, path: impl Into<PathBuf>) { self.address = Some(Address::Path(path.into())) }

    /// Sets the escalation for processes that overrun and whose requests have none; SIGKILL by
    /// default.
    pub fn escalation(self, escalation: Escalation) {
        self.hooks.reaper = Box::new(SignalReaper::new(escalation));
    }

    /// Sets the reaper that handles processes that overrun.
    pub fn reaper(self, reaper: impl Reaper + 'static) { self.hooks.reaper = Box::new(reaper) }

    /// Calls `hook` with a process and its expired timers before each call of the reaper, for
    /// example to record the process's stack. It runs on the server's thread. A panic in it is
    /// contained, and the reaper is called nevertheless. The notes on time and clients at
    /// [`on_event`](Self::on_event) apply here too.
    pub fn before_reap(self, hook: impl FnMut(&Expiry<'_>) + Send + 'static) {
        self.hooks.before_reap.push(Box::new(hook));
    }

    /// Calls `observer` with each event, on the server's thread. A panic in it is contained.
    ///
    /// No deadline is served while it runs, nor while a `tracing` subscriber handles the same
    /// event: hand long work to another thread. Do not use a client of this server in it: nobody
    /// would answer, and the call would fail after 5 s.
    pub fn on_event(self, observer: impl FnMut(&TimerEvent) + Send + 'static) {
        self.hooks.on_event.push(Box::new(observer));
    }

    /// Serves processes of all users. By default, the server serves only processes of its own user
    /// and of root.
    pub fn any_user(self) { self.any_user = true }
}

impl TimerServerBuilder {
    /// Creates the server. It listens at once, and serves when it is started.
    ///
    /// # Errors
    /// [`ServerError::Listen`]; [`ServerError::Setup`], also before Linux 6.5.
    pub fn build(self) -> Result<TimerServer, ServerError> {
        check_kernel().map_err(ServerError::Setup)?;
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
    Ok(format!("brigade-timer-{:032x}", u128::from_ne_bytes(random::bytes()?)))
}
