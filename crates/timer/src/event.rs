//! Events that a server emits.

use std::time::Duration;

use brigade_sys::clock::Monotonic;
use brigade_sys::process::Swept;

use crate::escalation::Escalation;
use crate::scope::Scope;

/// A timer whose deadline has passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredTimer {
    /// The timer's scope.
    pub scope: Scope,
    /// The timer's deadline.
    pub deadline: Monotonic,
    /// The escalation that the request asked for. Without one, the reaper decides.
    pub escalation: Option<Escalation>,
}

/// Number of scopes in a log line. A process may have thousands, and the server waits while the
/// line is written.
const SCOPES_LOGGED: usize = 16;

/// An action or observation of a server. Each one is also emitted as a `tracing` event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimerEvent {
    /// The server's thread is serving requests.
    Started,
    /// The server's thread has stopped. Timers stay armed.
    Stopped,
    /// A process has connected for the first time.
    Registered {
        /// The process.
        pid: u32,
    },
    /// A process has exited, by itself or because it was killed. Its timers are gone.
    Exited {
        /// The process.
        pid: u32,
        /// Number of timers it had armed.
        timers: usize,
    },
    /// Deadlines of a process have passed.
    Expired {
        /// The process.
        pid: u32,
        /// The expired timers; never empty.
        timers: Vec<ExpiredTimer>,
        /// Time from the first deadline until the server noticed it.
        lateness: Duration,
    },
    /// The reaper reported the process gone, or it exited after a signal of its escalation.
    Killed {
        /// The process.
        pid: u32,
        /// Time from the first deadline until the reaper was done, including the steps of an
        /// escalation.
        lateness: Duration,
        /// The descendants that were killed, and those that could not be.
        swept: Swept,
    },
    /// The reaper failed, or kept the process.
    Failed {
        /// The process.
        pid: u32,
        /// The reason.
        reason: String,
        /// Time until the next attempt; `None` if all timers of the process are dropped instead.
        retry_in: Option<Duration>,
    },
    /// A process was not accepted, or was disconnected.
    Refused {
        /// The process; 0 if it has no pid in the server's namespace.
        pid: u32,
        /// The reason.
        reason: String,
    },
    /// An iteration of the server's loop failed. The loop goes on.
    TurnFailed {
        /// The reason.
        reason: String,
    },
}

impl TimerEvent {
    pub(crate) fn trace(&self) {
        match self {
            Self::Started => tracing::info!("timer server started"),
            Self::Stopped => tracing::info!("timer server stopped"),
            Self::Registered { pid } => tracing::debug!(pid, "timer client registered"),
            Self::Exited { pid, timers } => tracing::debug!(pid, timers, "timer client exited"),
            Self::Expired { pid, timers, lateness } => {
                let logged = timers.iter().take(SCOPES_LOGGED);
                let scopes: Vec<String> = logged.map(|timer| timer.scope.to_string()).collect();
                tracing::warn!(pid, timers = timers.len(), ?scopes, ?lateness, "deadline expired");
            }
            Self::Killed { pid, lateness, swept } => {
                tracing::warn!(
                    pid,
                    ?lateness,
                    swept = ?swept.killed,
                    unseen = ?swept.unseen,
                    escaped = ?swept.escaped,
                    "timer client killed"
                );
            }
            Self::Failed { pid, reason, retry_in } => {
                tracing::error!(pid, reason, ?retry_in, "cannot reap timer client");
            }
            Self::Refused { pid, reason } => tracing::warn!(pid, reason, "timer client refused"),
            Self::TurnFailed { reason } => tracing::error!(reason, "timer server turn failed"),
        }
    }
}
