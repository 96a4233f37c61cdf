//! The signals that this crate sends.

use rustix::process::Signal as Raw;

/// A signal that a host sends to its workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Signal {
    /// SIGINT, which Ctrl-C sends.
    Interrupt,
    /// SIGTERM, a request to exit.
    Terminate,
    /// SIGKILL, which cannot be caught.
    Kill,
    /// SIGSTOP, which cannot be caught; the process pauses until [`Continue`](Self::Continue).
    Stop,
    /// SIGCONT, which ends a stop.
    Continue,
    /// SIGABRT, which ends the process with a core dump, if those are enabled.
    Abort,
    /// SIGURG, which asks a worker for a [sample](crate::crash). Other processes ignore it.
    Urgent,
}

impl From<Signal> for Raw {
    fn from(signal: Signal) -> Self {
        match signal {
            Signal::Interrupt => Raw::INT,
            Signal::Terminate => Raw::TERM,
            Signal::Kill => Raw::KILL,
            Signal::Stop => Raw::STOP,
            Signal::Continue => Raw::CONT,
            Signal::Abort => Raw::ABORT,
            Signal::Urgent => Raw::URG,
        }
    }
}
