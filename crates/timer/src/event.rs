//! What a server tells about its work.

use std::time::Duration;

use brigade_sys::clock::Monotonic;
use brigade_sys::process::Swept;

use crate::ladder::Ladder;
use crate::scope::Scope;

/// A timer whose deadline has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredTimer {
    /// What it was for.
    pub scope: Scope,
    /// When it was due.
    pub deadline: Monotonic,
    /// What the request wants to happen; the reaper decides when it says nothing.
    pub ladder: Option<Ladder>,
}

/// So many scopes are in a line of the log; a process may have thousands, and the server waits while it is written.
const SCOPES_LOGGED: usize = 16;

/// Something that a server has done or seen. Each is a `tracing` event as well.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimerEvent {
    /// The server's thread serves requests.
    Started,
    /// It does not any more; timers stay as they are.
    Stopped,
    /// A process has connected for the first time.
    Registered {
        /// Which.
        pid: u32,
    },
    /// A process has ended by itself, or after it was killed; its timers are gone.
    Exited {
        /// Which.
        pid: u32,
        /// So many were armed.
        timers: usize,
    },
    /// Deadlines have come.
    Expired {
        /// Whose.
        pid: u32,
        /// Which; never none.
        timers: Vec<ExpiredTimer>,
        /// From the first deadline until this was seen.
        lateness: Duration,
    },
    /// The reaper calls the process gone; or it has ended at a signal of its ladder.
    Killed {
        /// Which.
        pid: u32,
        /// From the first deadline until the reaper was done, with the steps of a ladder in between.
        lateness: Duration,
        /// What else was killed, and what could not be.
        swept: Swept,
    },
    /// The reaper has failed, or kept the process.
    Failed {
        /// Which.
        pid: u32,
        /// Why.
        reason: String,
        /// When it is tried again; if not, all timers of the process are given up.
        retry_in: Option<Duration>,
    },
    /// A process was not served, or not any more.
    Refused {
        /// Which; 0 if it has no number here.
        pid: u32,
        /// Why.
        reason: String,
    },
    /// A step of the server's loop did not work; the loop goes on.
    TurnFailed {
        /// Why.
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
                    "worker killed"
                );
            }
            Self::Failed { pid, reason, retry_in } => {
                tracing::error!(pid, reason, ?retry_in, "worker could not be reaped");
            }
            Self::Refused { pid, reason } => tracing::warn!(pid, reason, "timer client refused"),
            Self::TurnFailed { reason } => tracing::error!(reason, "timer server's turn failed"),
        }
    }
}
