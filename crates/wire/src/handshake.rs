//! How host and worker come to know each other, over the control socket.
//!
//! ```text
//! host                                   worker
//!   Hello (+ the table of task states) -->
//!                                     <-- Answer (or Refused)
//!   [opens the link]  Go               -->
//!                                     <-- Ready (or Refused)
//!                   [runs the initializer, if there is one]
//!                                     <-- Initialised (or InitializerFailed)
//! ```
//! `Go` and `Ready` are for links that are opened; rings are there from the beginning.
//!
//! All packets are postcard and fit into one packet of the control socket. The token proves to each side that the other
//! is the process that shares the control socket, also on the link, whose server has a name that others might find.

use std::fmt;
use std::path::PathBuf;

use brigade_sys::control::PACKET_LIMIT;
use serde::{Deserialize, Serialize};

use crate::error::MessageError;
use crate::ids::WorkerId;

/// From the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToWorkerControl {
    /// The first message; the table of task states comes along as a descriptor.
    Hello(Hello),
    /// The link is open at the host's end.
    Go,
}

/// From the worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromWorkerControl {
    /// The answer to `Hello`.
    Answer(Answer),
    /// The link is open at both ends.
    Ready,
    /// The worker cannot work here. This variant keeps its place and form in all versions, so that a worker of another
    /// version can say that it is one.
    Refused {
        /// Why.
        reason: String,
    },
    /// The initializer of the greeting has returned; tasks may come.
    Initialised,
    /// It has not: it panicked or gave an error. The worker ends.
    InitializerFailed {
        /// A fragment that can follow "the worker could not be started: ".
        reason: String,
    },
    /// Of a worker at work: the task that runs has a section that must end in time. The host is to look at the
    /// [table](crate::slots::SlotTable::section) then.
    Section {
        /// Nanoseconds of the monotonic clock.
        due: u64,
    },
}

/// Who the worker is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The host's protocol; compared before anything else is believed.
    pub version: u32,
    /// A secret of this handshake.
    pub token: Token,
    /// Slot and generation.
    pub worker: WorkerId,
    /// The pool's name.
    pub pool: String,
    /// The most bytes of one message.
    pub message_limit: u64,
    /// The length of the table of task states.
    pub slots: u16,
    /// Whether the worker's end of the host's lifeline is the second descriptor.
    pub lifeline: bool,
    /// How tasks will travel.
    pub link: LinkKind,
    /// Bytes of the pool's arena of arguments and of the worker's arena of results, whose descriptors come last; none of
    /// them when 0.
    pub arenas: (u64, u64),
    /// The folder that the worker makes for the server of an ipc link, and removes; empty for other links.
    pub folder: PathBuf,
    /// Whether the worker was started on cores of its own.
    pub pinned: bool,
    /// Resident bytes above which the worker asks to be replaced; 0 for no limit.
    pub max_rss: u64,
    /// How many pools deep the worker is nested; 1 for a pool of the main program.
    pub depth: u32,
    /// The identity of the host's executable: a worker of another build calls nothing by its offset.
    pub identity: [u8; 32],
    /// The offset of what runs before the first task. Its encoded argument is the last descriptor, sealed memory.
    pub initializer: Option<u64>,
    /// The offset of what runs before the worker leaves.
    pub finalizer: Option<u64>,
}

/// The flavour of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LinkKind {
    /// Rings behind the table of task states. The doorbell's page and descriptors come along; the answer completes it.
    Ring,
    /// ipc-channel, whose server the worker makes.
    Ipc,
}

/// Who the worker is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The worker's protocol.
    pub version: u32,
    /// The host's token.
    pub token: Token,
    /// The worker's process.
    pub pid: u32,
    /// The identity of the worker's executable.
    pub identity: [u8; 32],
    /// The name of the server of an ipc link; empty for rings.
    pub server: String,
    /// Whether the worker has mapped the arenas of the greeting. If not, what would be placed there travels in the messages.
    pub arenas: bool,
    /// Set by a program that takes tasks by name, and so need not be of the host's build.
    pub program: Option<ServerProgram>,
}

/// A program that has registered functions by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerProgram {
    /// The version that its author gave it.
    pub version: Option<String>,
}

/// Sixteen random bytes.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Token([u8; 16]);

impl Token {
    /// A new secret.
    ///
    /// # Panics
    /// When the system has no randomness, which Linux has from the start of the machine on.
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the system has a random number generator");
        Self(bytes)
    }

    /// A few characters for names that should not collide; tells nothing of use about other tokens.
    pub fn short(&self) -> String {
        let [a, b, c, d, ..] = self.0;
        format!("{:08x}", u32::from_be_bytes([a, b, c, d]))
    }
}

/// Takes the same time wherever the difference is.
impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        let difference = self.0.iter().zip(other.0).fold(0, |all, (a, b)| all | (a ^ b));
        // Keeps the optimiser from stopping at the first difference.
        std::hint::black_box(difference) == 0
    }
}

impl Eq for Token {}

/// A secret does not belong into logs.
impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token(..)")
    }
}

macro_rules! packets {
    ($($type:ty),*) => {$(
        impl $type {
            /// The message as one packet.
            ///
            /// # Errors
            /// [`MessageError::Encode`] when it holds a path that is not UTF-8, or more than a packet does.
            pub fn encode(&self) -> Result<Vec<u8>, MessageError> {
                let packet = postcard::to_stdvec(self)
                    .map_err(|_| MessageError::Encode("a path in it is not UTF-8"))?;
                if packet.len() > PACKET_LIMIT {
                    return Err(MessageError::Encode("its texts are longer than 64 KiB"));
                }
                Ok(packet)
            }

            /// The message in a packet.
            ///
            /// # Errors
            /// [`MessageError::Decode`] when there is none.
            pub fn decode(packet: &[u8]) -> Result<Self, MessageError> {
                match postcard::take_from_bytes(packet) {
                    Ok((message, [])) => Ok(message),
                    _ => Err(MessageError::Decode("a packet that is no handshake")),
                }
            }
        }
    )*};
}

packets!(ToWorkerControl, FromWorkerControl);

#[cfg(test)]
mod tests;
