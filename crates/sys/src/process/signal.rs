//! The signals that we send.

use rustix::process::Signal as Raw;

/// A signal that a host sends to its workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Signal {
    /// SIGINT: what Ctrl-C sends.
    Interrupt,
    /// SIGTERM: please end.
    Terminate,
    /// SIGKILL: cannot be caught.
    Kill,
    /// SIGSTOP: cannot be caught; the process stays where it is until [`Continue`](Self::Continue).
    Stop,
    /// SIGCONT: go on after a stop.
    Continue,
    /// SIGABRT: end with a core dump, if those are enabled.
    Abort,
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
        }
    }
}
