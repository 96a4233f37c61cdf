//! What can go wrong on either side.

use std::io;

/// Why a deadline could not be armed or released.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// [`expires`](crate::expires) was called before [`configure`](crate::configure).
    #[error(
        "this process has no timer client: call `brigade_timer::configure` with one first, or use \
         `TimerClient::expires`"
    )]
    NotConfigured,
    /// The variable that tells where the server is.
    #[error("the environment variable {variable} does not say where a timer server is")]
    Environment {
        /// Its name.
        variable: &'static str,
    },
    /// The text is no address.
    #[error("no address of a timer server")]
    Address(#[source] io::Error),
    /// No server listens there, or it is too busy for more clients.
    #[error("failed to connect to the timer server at {address}")]
    Connect {
        /// Where.
        address: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The server does not serve this process.
    #[error("the timer server refused this process: {0}")]
    Refused(String),
    /// The server has ended, or has closed the connection because of what this process had sent.
    #[error("the timer server is gone")]
    Gone(#[source] io::Error),
    /// The server runs, if at all, without reading requests.
    #[error("the timer server does not answer: is it started?")]
    Stalled,
    /// This process has as many timers as a process may have.
    #[error("this process has {limit} timers, which is the limit: release some")]
    TooManyTimers {
        /// The limit.
        limit: usize,
    },
    /// The scope's name is too long.
    #[error("a scope of {length} bytes is longer than the limit of {limit}")]
    ScopeTooLong {
        /// Its length.
        length: usize,
        /// The limit.
        limit: usize,
    },
}

/// Why a server could not be made or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Another server is there, or the name or path cannot be used.
    #[error("failed to listen at {address}")]
    Listen {
        /// Where.
        address: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Descriptors, memory or threads are used up.
    #[error("failed to set up the timer server")]
    Setup(#[source] io::Error),
    /// This process is a fork of the one that built the server.
    #[error(
        "the timer server belongs to another process: this one is a fork of it; build a server after the fork"
    )]
    Forked,
    /// It is running already.
    #[error("the timer server is running already")]
    AlreadyRunning,
    /// What the system said when the server waited.
    #[error("failed to wait for requests")]
    Wait(#[source] io::Error),
}
