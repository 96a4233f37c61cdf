//! Errors that end a worker, and the error of a task that emits items.

use std::ffi::OsString;
use std::io;

use brigade_sys::parent_death::ParentGone;
use brigade_wire::MessageError;
use brigade_wire::handshake::LinkKind;
use brigade_wire::link::LinkError;
use brigade_wire::link::connect::{BoxedError, ListenError};
use brigade_wire::version::PROTOCOL_VERSION;

use crate::exit_code;

/// An error before the first task. Each variant determines the exit code of the process.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CannotStart {
    #[error(
        "the variable BRIGADE_WORKER has the malformed value {0:?}; remove it from the environment"
    )]
    Marker(OsString),
    #[error(
        "the host uses version {0} of the protocol, this program version {PROTOCOL_VERSION}; build both from the same release"
    )]
    Version(u32),
    #[error(transparent)]
    HostGone(#[from] ParentGone),
    #[error("the host closed the control socket")]
    ControlClosed,
    #[error("cannot {operation}")]
    Control {
        operation: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("received {0} over the control socket")]
    Unexpected(&'static str),
    #[error("cannot read or write a control message")]
    Message(#[source] MessageError),
    #[error("cannot map the table of task states")]
    Slots(#[source] io::Error),
    #[error("cannot take over the {0} of the host")]
    Inherited(&'static str, #[source] io::Error),
    #[error("cannot map the argument of the initializer")]
    Argument(#[source] io::Error),
    #[error("cannot open /proc/self/statm, which `max_worker_rss` requires")]
    MemoryLimit(#[source] io::Error),
    #[error("cannot create the socket of the link")]
    Server(#[source] ListenError),
    #[error("cannot accept the link")]
    Accept(#[source] BoxedError),
    #[error(
        "the host uses `Link::{0:?}`, and this program was built without it; enable the feature `ipc` of brigade here, or use `Link::Ring` in the host"
    )]
    NoConnector(LinkKind),
}

/// A message came without descriptors that it names.
pub(crate) const TOO_FEW: CannotStart = CannotStart::Unexpected("too few descriptors");

impl CannotStart {
    pub(crate) fn exit_code(&self) -> i32 {
        match self {
            Self::Marker(_) => exit_code::MARKER,
            Self::Version(_) => exit_code::VERSION,
            Self::Server(ListenError::OtherThreads(_)) => exit_code::THREADS,
            Self::HostGone(_) | Self::ControlClosed => exit_code::HOST_GONE,
            Self::Inherited(..) => exit_code::INHERITED,
            Self::Control { .. } | Self::Unexpected(_) | Self::Message(_) => exit_code::CONTROL,
            Self::Slots(_) | Self::Argument(_) | Self::MemoryLimit(_) => exit_code::SLOTS,
            Self::Server(_) => exit_code::SERVER,
            Self::Accept(_) | Self::NoConnector(_) => exit_code::LINK_REFUSED,
        }
    }

    /// Returns `true` if another start would fail the same way, so that the host should not try.
    pub(crate) fn is_permanent(&self) -> bool {
        matches!(
            self,
            Self::Version(_) | Self::MemoryLimit(_) | Self::Server(_) | Self::NoConnector(_)
        )
    }
}

/// An error that ended the event loop.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoopError {
    #[error("the host closed the link without asking the worker to stop")]
    Closed,
    #[error("cannot receive a task (a task may have closed descriptors that are not its own)")]
    Receive(#[source] LinkError),
    #[error("received a malformed message")]
    Message(#[source] MessageError),
    #[error("cannot send an outcome (the task may have closed descriptors that are not its own)")]
    Send(#[source] LinkError),
}

impl LoopError {
    pub(crate) fn exit_code(&self) -> i32 {
        match self {
            Self::Closed => exit_code::LINK_CLOSED,
            Self::Receive(LinkError::Protocol(_)) | Self::Message(_) => exit_code::PROTOCOL,
            Self::Receive(_) => exit_code::LINK_BROKEN,
            Self::Send(_) => exit_code::OUTCOME_LOST,
        }
    }
}

/// The reason why [`Emit::emit`](crate::Emit::emit) has not handed an item over.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The stream was reset or closed, or the pool shuts down.
    #[error("nobody wants more items of this input: return from the function")]
    Closed,
    /// The consumer did not take earlier items before the soft deadline of the task.
    #[error(
        "the soft deadline passed before there was room for the item: return from the function"
    )]
    Expired,
    /// The item could not be encoded. Other items still can.
    #[error("the item cannot be encoded: {message}")]
    Codec {
        /// The cause.
        message: String,
    },
}

brigade_sys::debug_as_text!(EmitError);
