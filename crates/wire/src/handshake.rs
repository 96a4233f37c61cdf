//! The handshake of host and worker over the control socket.
//!
//! ```text
//! host                                   worker
//!   Hello (+ descriptors)              -->
//!                                     <-- Answer (or Refused)
//!   [opens the link]  Go               -->
//!                                     <-- Ready (or Refused)
//!                   [runs the initializer and enters the sandbox, if there are any]
//!                                     <-- Initialized (or InitializerFailed)
//!   [while tasks run]  Arena (+ its descriptor) -->
//! ```
//! Every worker is greeted in this way, whether it was executed or forked, as soon as its process
//! exists. It answers if the host asks it to: the host knows beforehand what a worker would say
//! that was forked from a server of the same pool. `Go` and `Ready` are only for links that need to
//! be opened; rings are usable at once.
//!
//! All packets are encoded with postcard and fit into one packet of the control socket. The token
//! proves to each side that the other is the process at the control socket. The link needs this
//! proof too, because other processes could find the name of its server.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use brigade_sys::arena::{ArenaRef, Terms};
use brigade_sys::confine::Confinement;
use brigade_sys::control::PACKET_LIMIT;
use brigade_sys::random;
use serde::{Deserialize, Serialize};

use crate::error::MessageError;
use crate::fork::{ForkRequest, FromForkServer, Serve};
use crate::link::ring;
use crate::slots::SlotTable;
use crate::worker_event::EventLevel;
use brigade_base::WorkerId;

/// A handshake packet from the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToWorkerControl {
    /// The first message, with [descriptors](Given).
    Hello(Hello),
    /// Sent in place of the greeting: the process becomes a fork server.
    Serve(Serve),
    /// Sent to a fork server.
    Fork(ForkRequest),
    /// The link is open at the host's end.
    Go,
    /// The arena of another worker, which a later message names. A descriptor comes along, through
    /// which it can be read.
    Arena(ArenaRef),
}

/// The number of arenas of other workers that a worker keeps: those that it was sent last.
pub const FOREIGN_ARENAS: usize = 8;

/// A handshake packet from the worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromWorkerControl {
    /// The reply to `Hello`.
    Answer(Answer),
    /// The link is open at both ends.
    Ready,
    /// The worker cannot work here. This variant keeps its position and its form in all versions,
    /// so that a worker of another version can report the mismatch.
    Refused {
        /// The reason.
        reason: String,
    },
    /// The initializer from `Hello` has returned, the worker is in its sandbox, and accepts tasks.
    /// Without an initializer, a preload and a sandbox, the host does not wait for that.
    Initialized {
        /// `true` if the worker can still take descriptors. Otherwise it needs the bytes of buffers
        /// in the arenas of other workers.
        takes_descriptors: bool,
    },
    /// The initializer panicked or returned an error. The worker exits.
    InitializerFailed {
        /// A fragment that fits after "the worker could not be started: ".
        reason: String,
    },
    /// Sent while the worker runs a task: the task has entered a section that must end in time. The
    /// host looks at the [table](crate::slots::SlotTable::section) when the section is due.
    Section {
        /// Time on the monotonic clock in nanoseconds.
        due: u64,
    },
    /// The process is about to end: the record of its [crash](brigade_sys::crash) is complete.
    Crashed,
    /// The sample of its stack that the host asked for is complete.
    Sampled,
    /// Sent by a fork server.
    ForkServer(FromForkServer),
}

/// The host's greeting, which tells the worker its role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// A secret of this handshake.
    pub token: Token,
    /// `true` if the host waits for an answer.
    pub asks: bool,
    /// The descriptors that come along.
    pub given: Given<()>,
    /// Slot and generation.
    pub worker: WorkerId,
    /// Maximum number of bytes of a payload.
    pub message_limit: u64,
    /// Number of entries in the table of task states.
    pub slots: u16,
    /// Level up to which the worker forwards its `tracing` events.
    pub events: Option<EventLevel>,
    /// The kind of link that carries the tasks.
    pub link: LinkKind,
    /// Bytes of the pool's arena of arguments and of the worker's arena of results.
    pub arenas: (u64, u64),
    /// The terms of the arena of results.
    pub terms: Terms,
    /// The folder that the worker creates for the server of an ipc link, and removes; empty for
    /// other links.
    pub folder: PathBuf,
    /// `true` if the worker was started on reserved cores.
    pub pinned: bool,
    /// Time that a copy may take to exit, if the worker runs each task in a copy of itself; only
    /// over rings.
    pub copies: Option<Duration>,
    /// Resident bytes above which the worker asks to be replaced; 0 for no limit.
    pub max_rss: u64,
    /// Bytes above those that it has before its first task, with which it asks to be replaced; 0
    /// for no limit.
    pub max_growth: u64,
    /// Nesting depth of the pool; 1 for a pool of the main program.
    pub depth: u32,
    /// Identity of the host's executable: a worker of another build calls no function by its
    /// offset.
    pub identity: [u8; 32],
    /// Offset of the function whose value all workers of the pool share, if the worker was not
    /// forked from a server that has called it.
    pub preload: Option<u64>,
    /// Offset of the function to call before the first task.
    pub initializer: Option<u64>,
    /// Offset of the function to call before the worker exits.
    pub finalizer: Option<u64>,
    /// The sandbox that the worker enters before its first task.
    pub sandbox: Option<Box<Confinement>>,
}

/// The descriptors of a greeting, in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given<T> {
    /// The memory of the table of task states, with that of rings and crashes behind it.
    pub segment: Option<T>,
    /// The worker's end of its lifeline.
    pub lifeline: Option<T>,
    /// The pipe for its `tracing` events.
    pub events: Option<T>,
    /// The page of the doorbell; over rings, with the next two.
    pub page: Option<T>,
    /// Rings for the collector.
    pub thread: Option<T>,
    /// Rings for a caller.
    pub caller: Option<T>,
    /// The arena of arguments.
    pub arguments: Option<T>,
    /// The arena of results.
    pub results: Option<T>,
    /// The encoded argument of `preload`, a sealed memory file.
    pub preload: Option<T>,
    /// The encoded argument of the initializer, a sealed memory file.
    pub initializer: Option<T>,
    /// The rules of the sandbox for files.
    pub files: Option<T>,
}

impl<T> Given<T> {
    /// Changes each thing in its order. Returns `None` if `change` does.
    fn map<U>(self, mut change: impl FnMut(T) -> Option<U>) -> Option<Given<U>> {
        let mut change = |thing: Option<T>| thing.map_or(Some(None), |it| change(it).map(Some));
        Some(Given {
            segment: change(self.segment)?,
            lifeline: change(self.lifeline)?,
            events: change(self.events)?,
            page: change(self.page)?,
            thread: change(self.thread)?,
            caller: change(self.caller)?,
            arguments: change(self.arguments)?,
            results: change(self.results)?,
            preload: change(self.preload)?,
            initializer: change(self.initializer)?,
            files: change(self.files)?,
        })
    }
}

impl Hello {
    /// Notes what comes along, and returns it in the order in which it is sent.
    pub fn give<T>(&mut self, given: Given<T>) -> Vec<T> {
        let mut all = Vec::new();
        let noted = given.map(|it| {
            all.push(it);
            Some(())
        });
        self.given = noted.unwrap_or_default();
        all
    }

    /// Finds out what each descriptor is that came along. Returns `None` if some are missing.
    pub fn take<T>(&self, descriptors: Vec<T>) -> Option<Given<T>> {
        let mut descriptors = descriptors.into_iter();
        self.given.clone().map(|()| descriptors.next())
    }

    /// Returns the number of words in front of the memory for crashes.
    pub fn words(&self) -> usize {
        match self.link {
            LinkKind::Ring => ring::words(self.slots),
            LinkKind::Ipc => SlotTable::words(self.slots),
        }
    }
}

/// The kind of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LinkKind {
    /// Rings behind the table of task states, which are complete at once.
    Ring,
    /// ipc-channel, with a server that the worker creates.
    Ipc,
}

/// The worker's reply to `Hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The worker's protocol version.
    pub version: u32,
    /// The host's token.
    pub token: Token,
    /// The worker's process id.
    pub pid: u32,
    /// The worker's program.
    pub program: WorkerProgram,
    /// Name of the server of an ipc link; empty for rings.
    pub server: String,
    /// `true` if the worker has mapped the arenas. Otherwise large payloads travel in the messages.
    pub arenas: bool,
}

/// The program of a worker or a fork server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerProgram {
    /// Identity of the executable.
    pub identity: [u8; 32],
    /// `true` if it takes tasks by name; it may be of another build than the host then.
    pub has_names: bool,
    /// The version that the author of such a program has set.
    pub version: Option<String>,
}

/// Sixteen random bytes.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Token([u8; 16]);

impl Token {
    /// Creates a random token.
    ///
    /// # Panics
    /// If the system has no randomness; Linux provides it from boot on.
    pub fn random() -> Self {
        #[expect(clippy::expect_used, reason = "documented under Panics; Linux never fails")]
        Self(random::bytes().expect("the system has a random number generator"))
    }

    /// Returns a few characters for names that should not collide. They reveal nothing useful about
    /// other tokens.
    pub fn short(&self) -> String {
        let [a, b, c, d, ..] = self.0;
        format!("{:08x}", u32::from_be_bytes([a, b, c, d]))
    }
}

/// Takes the same time wherever the difference is.
impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        let difference = self.0.iter().zip(other.0).fold(0, |all, (a, b)| all | (a ^ b));
        // Keeps the optimizer from stopping at the first difference.
        std::hint::black_box(difference) == 0
    }
}

impl Eq for Token {}

/// A secret must not appear in logs.
impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token(..)")
    }
}

macro_rules! packets {
    ($($type:ty),*) => {$(
        impl $type {
            /// Encodes the message as one packet.
            ///
            /// # Errors
            /// [`MessageError::Encode`] if the message holds a path that is not UTF-8, or exceeds
            /// the size of a packet.
            pub fn encode(&self) -> Result<Vec<u8>, MessageError> {
                let packet = postcard::to_stdvec(self)
                    .map_err(|_| MessageError::Encode("a path is not UTF-8"))?;
                if packet.len() > PACKET_LIMIT {
                    return Err(MessageError::Encode("the packet exceeds 64 KiB"));
                }
                Ok(packet)
            }

            /// Decodes the message in a packet.
            ///
            /// # Errors
            /// [`MessageError::Decode`] if the packet is not a handshake message.
            pub fn decode(packet: &[u8]) -> Result<Self, MessageError> {
                match postcard::take_from_bytes(packet) {
                    Ok((message, [])) => Ok(message),
                    _ => Err(MessageError::Decode("malformed handshake packet")),
                }
            }
        }
    )*};
}

packets!(ToWorkerControl, FromWorkerControl);

#[cfg(not(loom))]
#[cfg(test)]
mod tests;
