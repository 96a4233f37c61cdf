//! The client, through which a process arms deadlines for itself.

mod connection;
mod guard;
mod process_wide;

use std::env;
use std::fmt;
use std::process::Command;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brigade_sys::clock::{Monotonic, now};
use brigade_sys::fork::PerProcess;
use brigade_sys::request_socket::Address;
use brigade_sys::sync::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

use crate::error::ClientError;
use crate::escalation::Escalation;
use crate::request::{TimerRequest, packet};
use crate::scope::{SCOPE_LIMIT, Scope};
use connection::Connection;
pub use guard::TimerGuard;
pub use process_wide::{configure, expires};

/// Arms deadlines for the process that uses it, at the server that it names.
///
/// A client is a server address and a connection that opens on first use. Pass it to other
/// processes as text (`to_string` and `parse`), through serde, or in the environment
/// ([`hand_to`](Self::hand_to) and [`from_environment`](Self::from_environment)). Each process
/// opens its own connection, and the kernel tells the server which process that is, so a process
/// cannot arm timers for another one. A forked copy counts as a process of its own.
///
/// Methods send a request and return without waiting for a reply. Deadlines are points in time, so
/// the delay of the transport does not shift them. They stay armed after the client is dropped,
/// until they are released or moved, or the process ends.
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
    escalation: Option<Escalation>,
    /// Shared by clones. Another thread may hold the lock during a fork, so the copy gets its own.
    connection: Arc<PerProcess<Mutex<Option<Arc<Connection>>>>>,
}

/// The environment variable that passes a server's address to a child process.
pub const ADDRESS_VARIABLE: &str = "BRIGADE_TIMER";

impl TimerClient {
    pub(crate) fn at(address: Address) -> Self {
        Self { address, escalation: None, connection: Arc::default() }
    }

    /// Returns the client that the parent process passed in the environment.
    ///
    /// # Errors
    /// [`ClientError::Environment`] if the variable is not set, [`ClientError::Address`] if it
    /// holds no server address.
    pub fn from_environment() -> Result<Self, ClientError> {
        let address = env::var(ADDRESS_VARIABLE);
        address.map_err(|_| ClientError::Environment { variable: ADDRESS_VARIABLE })?.parse()
    }

    /// Passes the client to a process that is about to be started, in its environment.
    pub fn hand_to<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env(ADDRESS_VARIABLE, self.to_string())
    }

    /// Returns a client whose timers use this escalation instead of the server's. It shares the
    /// connection.
    #[must_use]
    pub fn with_escalation(&self, escalation: Escalation) -> Self {
        Self { escalation: Some(escalation), ..self.clone() }
    }

    /// Arms a timer: this process is killed at the deadline unless the scope is released first. A
    /// scope that is already armed gets the new deadline.
    ///
    /// # Errors
    /// See [`ClientError`]. On error, the timer is not armed.
    pub fn acquire(&self, scope: impl Into<Scope>, deadline: Instant) -> Result<(), ClientError> {
        let scope = checked(scope.into())?;
        // In this order, so that a delay between the two readings makes the deadline later, not
        // earlier.
        let left = deadline.saturating_duration_since(Instant::now());
        self.acquire_at(scope, now().saturating_add(left))
    }

    fn acquire_at(&self, scope: Scope, deadline: Monotonic) -> Result<(), ClientError> {
        match self.connection(None)?.reserve() {
            // Another server may have taken over the address; `send` connects to it.
            Err(ClientError::Gone(_)) => {}
            reserved => reserved?,
        }
        let (deadline, escalation) = (deadline.as_nanos(), self.escalation.clone());
        self.send(&TimerRequest::Acquire { scope, deadline, escalation })
    }

    /// Disarms a timer. Releasing a scope that is not armed is not an error.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn release(&self, scope: impl Into<Scope>) -> Result<(), ClientError> {
        self.send(&TimerRequest::Release { scope: checked(scope.into())? })
    }

    /// Arms a timer with a scope of its own. Dropping the guard releases it, including during a
    /// panic.
    ///
    /// # Errors
    /// See [`ClientError`]. On error, the timer is not armed.
    pub fn expires(&self, after: Duration) -> Result<TimerGuard, ClientError> {
        self.expires_as(Scope::unique(), after)
    }

    /// Like [`expires`](Self::expires), with a named scope. A guard nested in another one of the
    /// same name replaces its deadline, and its drop releases both.
    ///
    /// # Errors
    /// See [`ClientError`]. On error, the timer is not armed.
    pub fn expires_as(
        &self,
        scope: impl Into<Scope>,
        after: Duration,
    ) -> Result<TimerGuard, ClientError> {
        let scope = checked(scope.into())?;
        self.acquire_at(scope.clone(), now().saturating_add(after))?;
        Ok(TimerGuard::new(self.clone(), scope))
    }

    /// Connects if this process is not connected yet, which checks that the server is running.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn connect(&self) -> Result<(), ClientError> {
        self.connection(None).map(drop)
    }

    fn send(&self, request: &TimerRequest) -> Result<(), ClientError> {
        let packet = packet(request);
        let connection = self.connection(None)?;
        match connection.send(&packet) {
            Err(ClientError::Gone(_)) => {
                if let Some(refused) = connection.refusal() {
                    self.forget(&connection);
                    return Err(refused);
                }
                // Another server may have taken over the address.
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

    /// Returns this process's connection, and replaces it if it is the `broken` one.
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
        connection.lock()
    }
}

fn checked(scope: Scope) -> Result<Scope, ClientError> {
    let (length, limit) = (scope.length(), SCOPE_LIMIT);
    if length > limit { Err(ClientError::ScopeTooLong { length, limit }) } else { Ok(scope) }
}

impl fmt::Display for TimerClient {
    /// Writes the server's address; the escalation is not part of it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(out)
    }
}

brigade_sys::debug_fields!(impl TimerClient { address, escalation });

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
