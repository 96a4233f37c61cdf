//! The protocol of host and fork server.
//!
//! A fork server is a worker that is sent `Serve` in place of the greeting. It forks a worker for
//! each request; the new worker has its own control socket, on which the host goes on with the
//! usual [handshake](crate::handshake).
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

use crate::handshake::WorkerProgram;

/// Makes a worker a fork server. The shared memory in which it leaves the number of each copy comes
/// along as a descriptor, and the encoded argument of `preload`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serve {
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
}

/// An answer of the fork server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromForkServer {
    /// It begins to run `preload`.
    Preloading,
    /// It forks from now on.
    Serving {
        /// Its program, which is that of its workers.
        program: WorkerProgram,
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
