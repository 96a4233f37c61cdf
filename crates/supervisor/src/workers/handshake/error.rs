//! Errors of the handshake, and their explanations.

use std::time::Duration;

use brigade_sys::process::{Exit, last_line};
use brigade_wire::handshake::FromWorkerControl;

use crate::error::StartError;
use crate::workers::death::Death;
use crate::workers::settings::Settings;
use crate::workers::supervisor::Supervisor;
use crate::workers::worker_process::WorkerProcess;

/// An error of the handshake, before the exit status of the process is known.
pub(super) enum HandshakeError {
    /// The process has ended.
    Gone,
    /// A retry would fail too.
    Permanent(String),
    /// The system refused something that it may grant later.
    Transient(String),
}

/// A reason why something could not be made, which may be possible later.
impl From<String> for HandshakeError {
    fn from(reason: String) -> Self {
        Self::Transient(reason)
    }
}

/// The phase of a worker's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Handshake,
    Initializer,
}

impl Phase {
    /// Returns the time that it may take, and the name of the setting.
    pub(super) fn limit(self, settings: &Settings) -> (Duration, &'static str) {
        match self {
            Self::Handshake => (settings.start_timeout, "start_timeout"),
            Self::Initializer => (settings.setup.timeout, "initializer_timeout"),
        }
    }

    /// Returns the part of an error message that says that the phase was not completed.
    pub(super) fn incomplete(self) -> &'static str {
        match self {
            Self::Handshake => "it did not complete the handshake",
            Self::Initializer => "its initializer did not return",
        }
    }
}

/// Explains a valid message at the wrong time.
pub(super) fn unexpected(message: FromWorkerControl) -> HandshakeError {
    garbage(match message {
        FromWorkerControl::Refused { reason } => {
            return HandshakeError::Permanent(format!("it refused: {reason}"));
        }
        FromWorkerControl::Answer(_) => "a second answer",
        FromWorkerControl::Section { .. } => "the start of a section without a task",
        FromWorkerControl::Crashed | FromWorkerControl::Sampled => "a notice without a reason",
        FromWorkerControl::ForkServer(_) => "an answer of a fork server",
        FromWorkerControl::Ready => "an unexpected `ready`",
        FromWorkerControl::Initialized { .. } | FromWorkerControl::InitializerFailed { .. } => {
            "an unexpected initializer result"
        }
    })
}

pub(super) fn garbage(what: &str) -> HandshakeError {
    HandshakeError::Permanent(format!(
        "it sent {what}; the program that was started is not a worker of this release"
    ))
}

/// Ends the process and explains in one sentence what happened.
pub(super) fn explain(
    supervisor: &Supervisor,
    process: &WorkerProcess,
    phase: Phase,
    error: HandshakeError,
) -> StartError {
    // A process that may not be killed is not reaped; any other has ended or will end soon.
    let exit = process.end();
    let (stderr_tail, lines) = process.finish_streams(&supervisor.output);
    if let Some(lines) = lines {
        // No other thread waits for this one.
        supervisor.output.wait_until_emitted(lines);
    }
    let mut death = Death::new(*exit.as_ref().unwrap_or(&Exit::Unknown), stderr_tail);
    death.crash = process.crash_report(death.exit);
    let when = match phase {
        Phase::Handshake => "it ended before the handshake was complete",
        Phase::Initializer => "it ended in its initializer",
    };
    let (is_permanent, what) = match (error, exit) {
        (HandshakeError::Permanent(what), _) => (true, what),
        (HandshakeError::Transient(what), _) => (false, what),
        (HandshakeError::Gone, Ok(_)) => (false, format!("{when}: {}", death.end())),
        (HandshakeError::Gone, Err(error)) => (false, format!("{when} ({error})")),
    };
    let pid = process.pid().unwrap_or(0);
    let mut reason = format!("{} (pid {pid}) cannot be started: {what}", process.worker());
    if let Some(line) = last_line(&death.stderr_tail) {
        reason.push_str("; its last line on stderr: ");
        reason.push_str(line);
    }
    process.set_dead(death);
    StartError { is_permanent, reason }
}
