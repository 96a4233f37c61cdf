//! Why a worker ended without being asked to.

use std::ffi::OsString;
use std::io;

use brigade_sys::parent_death::ParentGone;
use brigade_wire::MessageError;
use brigade_wire::link::LinkError;
use brigade_wire::link::ipc::ServerError;
use brigade_wire::version::PROTOCOL_VERSION;

use crate::exit_code;

/// Why a worker did not come to its tasks; each ends the process with an exit code of its own kind.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(
        "the variable BRIGADE_WORKER has the value {0:?}, which no host writes; remove it from the environment"
    )]
    Marker(OsString),
    #[error(
        "the host speaks version {0} of the protocol, this program version {PROTOCOL_VERSION}; build both from the same release"
    )]
    Version(u32),
    #[error(transparent)]
    HostGone(#[from] ParentGone),
    #[error("the host closed the control socket")]
    ControlClosed,
    #[error("failed to {operation}")]
    Control {
        operation: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("received {0} over the control socket")]
    Unexpected(&'static str),
    #[error("failed to read or write a control message")]
    Message(#[source] MessageError),
    #[error("failed to map the table of task states")]
    Slots(#[source] io::Error),
    #[error("failed to map the argument of the initializer")]
    Argument(#[source] io::Error),
    #[error("failed to make the server of the link")]
    Server(#[source] ServerError),
    #[error("failed to accept the link")]
    Accept(#[source] ServerError),
    #[error("somebody who does not know the token connected to the link's socket")]
    Token,
}

impl StartError {
    pub(crate) fn exit_code(&self) -> i32 {
        match self {
            Self::Marker(_) => exit_code::MARKER,
            Self::Version(_) => exit_code::VERSION,
            Self::Server(ServerError::Environment(_)) => exit_code::THREADS,
            Self::HostGone(_) | Self::ControlClosed => exit_code::HOST_GONE,
            Self::Control { .. } | Self::Unexpected(_) | Self::Message(_) => exit_code::CONTROL,
            Self::Slots(_) | Self::Argument(_) => exit_code::SLOTS,
            Self::Server(_) => exit_code::SERVER,
            Self::Accept(_) | Self::Token => exit_code::LINK_REFUSED,
        }
    }

    /// Whether another start would end the same way, so that the host had better not try.
    pub(crate) fn is_permanent(&self) -> bool {
        matches!(self, Self::Version(_) | Self::Server(_))
    }
}

/// Why a worker left its tasks without being asked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoopError {
    #[error("the host closed the link without saying stop")]
    Closed,
    #[error("failed to receive a task (a task may have closed descriptors that are not its own)")]
    Receive(#[source] LinkError),
    #[error("received something that is no task")]
    Message(#[source] MessageError),
    #[error(
        "failed to send an outcome (the task may have closed descriptors that are not its own)"
    )]
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
