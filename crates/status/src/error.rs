//! Errors of the live view.

use std::io;
use std::net::SocketAddr;

/// The server of the live view could not be started.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address could not be resolved.
    #[error("cannot resolve the address of the live view: use one such as 127.0.0.1:0")]
    Resolve(#[source] io::Error),
    /// Other machines can reach the address.
    #[error(
        "the live view has no authentication, and other machines can reach {0}: use a loopback \
         address such as 127.0.0.1:0, or allow it with `allow_remote_clients`"
    )]
    NotLoopback(SocketAddr),
    /// The address could not be bound.
    #[error("cannot listen on {address} for the live view: use a free port, or 0 for any")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The thread could not be started, for lack of descriptors or memory.
    #[error("cannot start the thread of the live view")]
    Start(#[source] io::Error),
}

brigade_sys::debug_as_text!(ServeError);
