//! The worker's end of the control socket, which connects it to its host.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use brigade_sys::control::{ControlSocket, Received};
use brigade_sys::crash::{self, Notices};
use brigade_sys::segment::Segment;
use brigade_wire::codec;
use brigade_wire::handshake::{FromWorkerControl, ToWorkerControl};
use brigade_wire::worker_thread::Initialized;

use crate::error::CannotStart;

/// The way of a worker to its host, apart from the link.
pub(crate) enum Host {
    /// That of a process, which keeps it open for life: its end tells the host that this process is
    /// gone or has lost its descriptors.
    Process(Arc<Control>),
    /// That of a thread of the host, which gets the result of its initializer.
    Thread(Initialized),
}

/// The control socket of a worker.
#[derive(Debug)]
pub(crate) struct Control(ControlSocket);

impl Control {
    pub(crate) fn new(socket: ControlSocket) -> Self {
        Self(socket)
    }

    /// Sends a message to the host.
    pub(crate) fn send(&self, message: &FromWorkerControl) -> Result<(), CannotStart> {
        self.send_with(message, &[])
    }

    /// Tells the host not to try again, if the error is permanent.
    pub(crate) fn refuse(&self, error: &CannotStart) {
        if error.is_permanent() {
            // If this fails, the exit code and the line on stderr have to suffice.
            let _ = self.send(&FromWorkerControl::Refused { reason: codec::chain(error) });
        }
    }

    /// Sends a message and descriptors to the host.
    pub(crate) fn send_with(
        &self,
        message: &FromWorkerControl,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), CannotStart> {
        let packet = message.encode().map_err(CannotStart::Message)?;
        self.0.send(&packet, descriptors).map_err(|source| match source.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                CannotStart::ControlClosed
            }
            _ => failed_to("write to the control socket")(source),
        })
    }

    /// Lets this process record its crashes in the shared memory, and announce them to the host.
    pub(crate) fn report_crashes(&self, segment: &Arc<Segment>, offset: usize) {
        let packet = |message: FromWorkerControl| message.encode().unwrap_or_default();
        let notices = Notices {
            crashed: packet(FromWorkerControl::Crashed),
            sampled: packet(FromWorkerControl::Sampled),
        };
        // Without /proc, the exit status has to suffice.
        let _ = crash::install(segment, offset, self.0.as_fd(), notices);
    }

    /// Returns `true` if this process can take descriptors that the host sends.
    pub(crate) fn takes_descriptors(&self) -> bool {
        self.0.takes_descriptors()
    }

    /// Returns the next message of the host, or `None` if none has arrived.
    pub(crate) fn try_receive(&self) -> io::Result<Option<(ToWorkerControl, Vec<OwnedFd>)>> {
        match self.0.try_receive()? {
            Some(Received::Packet { bytes, descriptors }) => {
                let message = ToWorkerControl::decode(&bytes).map_err(io::Error::other)?;
                Ok(Some((message, descriptors)))
            }
            _ => Ok(None),
        }
    }

    /// Blocks until the host sends a message.
    pub(crate) fn receive(&self) -> Result<(ToWorkerControl, Vec<OwnedFd>), CannotStart> {
        match self.0.receive(None, None).map_err(failed_to("read from the control socket"))? {
            Received::Packet { bytes, descriptors } => {
                let message = ToWorkerControl::decode(&bytes).map_err(CannotStart::Message)?;
                Ok((message, descriptors))
            }
            // Without a deadline and a process to watch, only the host's end can end the wait.
            Received::Closed | Received::TimedOut | Received::PeerDied => {
                Err(CannotStart::ControlClosed)
            }
        }
    }
}

/// Returns a function that turns an error of the control socket into a `CannotStart`.
pub(crate) fn failed_to(operation: &'static str) -> impl Fn(io::Error) -> CannotStart {
    move |source| CannotStart::Control { operation, source }
}
