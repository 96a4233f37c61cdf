//! Errors of clients and servers.

use std::io;

/// An error of arming or releasing a deadline.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// [`expires`](crate::expires) was called before [`configure`](crate::configure).
    #[error(
        "this process has no timer client: call `brigade_timer::configure` with one first, or use \
         `TimerClient::expires`"
    )]
    NotConfigured,
    /// The environment variable with the server's address is not set.
    #[error("the environment variable {variable} does not hold a timer server address")]
    Environment {
        /// The variable's name.
        variable: &'static str,
    },
    /// The text is not an address.
    #[error("not a timer server address")]
    Address(#[source] io::Error),
    /// No server listens at the address, or its queue of new clients is full.
    #[error("cannot connect to the timer server at {address}")]
    Connect {
        /// The address.
        address: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The server refuses to serve this process.
    #[error("the timer server refused this process: {0}")]
    Refused(String),
    /// The server has ended, or closed the connection because of what this process sent.
    #[error("the timer server is gone")]
    Gone(#[source] io::Error),
    /// The server does not read requests. It may not have been started.
    #[error("the timer server does not answer: is it started?")]
    Stalled,
    /// This process has the maximum number of timers.
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

/// An error of building or using a server.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Another server listens there, or the name or path cannot be used.
    #[error("cannot listen at {address}")]
    Listen {
        /// The address.
        address: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The system is out of descriptors, memory or threads, or older than Linux 6.5.
    #[error("cannot set up the timer server")]
    Setup(#[source] io::Error),
    /// This process is a fork of the one that built the server.
    #[error(
        "the timer server belongs to another process: this one is a fork of it; build a server after the fork"
    )]
    Forked,
    /// The server is already running.
    #[error("the timer server is already running")]
    AlreadyRunning,
    /// Waiting for requests failed.
    #[error("cannot wait for requests")]
    Wait(#[source] io::Error),
}

brigade_sys::debug_as_text!(ClientError, ServerError);
