//! Clients: how a process arms deadlines for itself.

mod connection;
mod guard;
mod process_wide;

use std::env;
use std::fmt;
use std::process::Command;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brigade_sys::clock::{Monotonic, now};
use brigade_sys::fork::PerProcess;
use brigade_sys::request_socket::Address;
use serde::{Deserialize, Serialize};

use crate::error::ClientError;
use crate::ladder::Ladder;
use crate::request::{Request, packet};
use crate::scope::{SCOPE_LIMIT, Scope};
use connection::Connection;
pub use guard::TimerGuard;
pub use process_wide::{configure, expires};

/// Arms deadlines for the process that uses it, at the server that it names.
///
/// It is a name and a connection that is made when it is first used. The name goes to other processes in any way: as text
/// (`to_string` and `parse`), through serde, or in the environment ([`hand_to`](Self::hand_to) and
/// [`from_environment`](Self::from_environment)). Each process gets a connection of its own, and whose timers they are
/// the kernel says: nobody arms timers for others. A process that was forked counts as another.
///
/// Requests are sent and not answered; they are on their way when the method returns. Deadlines are points in time, so the
/// way costs nothing. They stay armed when the client is dropped, until they are released, moved, or the process ends.
///
/// ```
/// # let mut server = brigade_timer::TimerServer::builder().build()?;
/// # server.start()?;
/// use brigade_timer::TimerClient;
/// use std::time::{Duration, Instant};
///
/// let client: TimerClient = server.client().to_string().parse()?;
/// client.acquire("rendezvous", Instant::now() + Duration::from_secs(60))?;
/// client.release("rendezvous")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimerClient {
    address: Address,
    ladder: Option<Ladder>,
    /// Shared by clones. The lock may be held by another thread when the process forks, so a copy has its own.
    connection: Arc<PerProcess<Mutex<Option<Arc<Connection>>>>>,
}

/// The environment variable by which a server's address goes to a child.
pub const ADDRESS_VARIABLE: &str = "BRIGADE_TIMER";

impl TimerClient {
    pub(crate) fn at(address: Address) -> Self {
        Self { address, ladder: None, connection: Arc::default() }
    }

    /// The client that a parent has handed to this process.
    ///
    /// # Errors
    /// [`ClientError::Environment`] when there is none.
    pub fn from_environment() -> Result<Self, ClientError> {
        let address = env::var(ADDRESS_VARIABLE);
        address.map_err(|_| ClientError::Environment { variable: ADDRESS_VARIABLE })?.parse()
    }

    /// Hands it to a process that is about to be started.
    pub fn hand_to<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env(ADDRESS_VARIABLE, self.to_string())
    }

    /// A client whose timers have this ladder, whatever the server's is. It shares the connection.
    #[must_use]
    pub fn with_ladder(&self, ladder: Ladder) -> Self {
        Self { ladder: Some(ladder), ..self.clone() }
    }

    /// Arms a timer: at the deadline this process is killed, unless the scope is released before. A scope that is armed
    /// already gets the new deadline.
    ///
    /// # Errors
    /// See [`ClientError`]; the timer is then not armed.
    pub fn acquire(&self, scope: impl Into<Scope>, deadline: Instant) -> Result<(), ClientError> {
        let scope = checked(scope.into())?;
        // In this order, so that whatever comes between makes it later and not earlier.
        let left = deadline.saturating_duration_since(Instant::now());
        self.acquire_at(scope, now().saturating_add(left))
    }

    fn acquire_at(&self, scope: Scope, deadline: Monotonic) -> Result<(), ClientError> {
        match self.connection(None)?.reserve() {
            // A server of the same name may have taken its place; then it is asked.
            Err(ClientError::Gone(_)) => {}
            reserved => reserved?,
        }
        let (deadline, ladder) = (deadline.as_nanos(), self.ladder.clone());
        self.send(&Request::Acquire { scope, deadline, ladder })
    }

    /// Disarms a timer. A scope that is not armed is no error.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn release(&self, scope: impl Into<Scope>) -> Result<(), ClientError> {
        self.send(&Request::Release { scope: checked(scope.into())? })
    }

    /// Arms a timer of its own scope, which is released when the guard is dropped, also by a panic.
    ///
    /// # Errors
    /// See [`ClientError`]; the timer is then not armed.
    pub fn expires(&self, after: Duration) -> Result<TimerGuard, ClientError> {
        self.expires_as(Scope::unique(), after)
    }

    /// As [`expires`](Self::expires) with a scope of a name. A guard inside of another of the same name replaces its
    /// deadline, and releases both.
    ///
    /// # Errors
    /// See [`ClientError`]; the timer is then not armed.
    pub fn expires_as(
        &self,
        scope: impl Into<Scope>,
        after: Duration,
    ) -> Result<TimerGuard, ClientError> {
        let scope = checked(scope.into())?;
        self.acquire_at(scope.clone(), now().saturating_add(after))?;
        Ok(TimerGuard::new(self.clone(), scope))
    }

    /// Connects, if this process is not connected yet: to find out now whether the server is there.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn connect(&self) -> Result<(), ClientError> {
        self.connection(None).map(drop)
    }

    fn send(&self, request: &Request) -> Result<(), ClientError> {
        let packet = packet(request);
        let connection = self.connection(None)?;
        match connection.send(&packet) {
            Err(ClientError::Gone(_)) => {
                if let Some(refused) = connection.farewell() {
                    self.forget(&connection);
                    return Err(refused);
                }
                // A server of the same name may have taken its place.
                self.connection(Some(&connection))?.send(&packet)
            }
            sent => sent,
        }
    }

    fn forget(&self, broken: &Arc<Connection>) {
        let mut held = self.lock();
        if held.as_ref().is_some_and(|held| Arc::ptr_eq(held, broken)) {
            *held = None;
        }
    }

    /// The connection of this process, made anew if it is the one that is broken.
    fn connection(&self, broken: Option<&Arc<Connection>>) -> Result<Arc<Connection>, ClientError> {
        let mut held = self.lock();
        if let Some(connection) = &*held
            && !broken.is_some_and(|broken| Arc::ptr_eq(broken, connection))
        {
            return Ok(Arc::clone(connection));
        }
        *held = None;
        let connection = Arc::new(Connection::open(&self.address)?);
        *held = Some(Arc::clone(&connection));
        Ok(connection)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Connection>>> {
        let connection = self.connection.get_or_make(|_| Mutex::default());
        connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn checked(scope: Scope) -> Result<Scope, ClientError> {
    match scope.length() {
        length if length > SCOPE_LIMIT => {
            Err(ClientError::ScopeTooLong { length, limit: SCOPE_LIMIT })
        }
        _ => Ok(scope),
    }
}

impl fmt::Display for TimerClient {
    /// The server's address; a ladder is not part of it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(out)
    }
}

impl fmt::Debug for TimerClient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("TimerClient");
        out.field("address", &self.address).field("ladder", &self.ladder).finish_non_exhaustive()
    }
}

impl FromStr for TimerClient {
    type Err = ClientError;

    fn from_str(text: &str) -> Result<Self, ClientError> {
        Address::parse(text).map(Self::at).map_err(ClientError::Address)
    }
}

impl TryFrom<String> for TimerClient {
    type Error = ClientError;

    fn try_from(text: String) -> Result<Self, ClientError> {
        text.parse()
    }
}

impl From<TimerClient> for String {
    fn from(client: TimerClient) -> Self {
        client.to_string()
    }
}
