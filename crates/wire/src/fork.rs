//! The protocol of host and fork server.
//!
//! A fork server is a worker that is sent `Serve` in place of the greeting. It forks a worker for
//! each request; the new worker has its own control socket. The request holds the worker's
//! greeting, or the host goes on with the usual [handshake](crate::handshake).
//!
//! ```text
//! host                                     fork server
//!   Serve (+ memory, preload's argument) -->
//!                                       <-- Preloading, if there is a preload
//!                                       <-- Serving, Unsuitable, or PreloadFailed
//!   Fork (+ the worker's descriptors)   -->
//!                                       <-- Forked (+ its pidfd), or NotForked
//! ```

use brigade_sys::inherited::Inherited;
use serde::{Deserialize, Serialize};

use crate::handshake::Hello;

/// Makes a worker a fork server. The shared memory in which it leaves the number of each copy comes
/// along as a descriptor, and the encoded argument of `preload`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serve {
    /// The host's protocol version; compared before any other field is used.
    pub version: u32,
    /// Identity of the host's executable.
    pub identity: [u8; 32],
    /// Offset of the function to call before the first copy.
    pub preload: Option<u64>,
}

/// A request for a worker. Its control socket, standard output and error, and the folder to start
/// in come along as descriptors, and then those that the fields name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkRequest {
    /// `true` if the next descriptor is a sealed memory file with the whole environment, which
    /// differs from the server's.
    pub environment: bool,
    /// Number of files to which the worker writes a 0, to move itself into its control groups.
    pub doors: u8,
    /// The settings of the thread that would have started it.
    pub inherited: Inherited,
    /// The greeting, whose descriptors come after all others. The worker does not answer: the host
    /// knows what the answer would say, and sends it tasks at once. Without it, the handshake
    /// follows.
    pub hello: Option<Box<Hello>>,
}

/// An answer of the fork server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromForkServer {
    /// It begins to run `preload`.
    Preloading,
    /// It forks from now on.
    Serving {
        /// Identity of its executable.
        identity: [u8; 32],
        /// Bytes of its private memory that are in small pages, whose tables each copy needs.
        small_pages: u64,
    },
    /// It cannot fork safely.
    Unsuitable {
        /// A fragment that fits after "workers cannot be forked: ".
        reason: String,
        /// Number of its threads.
        threads: u64,
    },
    /// `preload` panicked, returned an error, or has left a thread running.
    PreloadFailed {
        /// One sentence without a period.
        reason: String,
    },
    /// The worker exists. A pidfd comes along.
    Forked,
    /// The system refused another process.
    NotForked {
        /// A fragment that fits after "cannot fork it: ".
        reason: String,
    },
}
