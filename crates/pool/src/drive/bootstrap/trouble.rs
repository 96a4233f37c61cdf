//! What may go wrong while a worker starts, in words.

use std::time::Duration;

use brigade_sys::process::Signal;
use brigade_wire::handshake::FromWorkerControl;
use brigade_worker::exit_code;

use super::super::attendant::Newborn;
use super::super::shared::Shared;
use crate::config::Config;
use crate::error::last_line;

/// Why there is none.
pub(in crate::drive) struct Failure {
    pub(in crate::drive) permanent: bool,
    pub(in crate::drive) reason: String,
}

/// What went wrong before it is known how the process ended.
pub(super) enum Trouble {
    /// The process is gone.
    Gone,
    /// It will not get better by trying again.
    Permanent(String),
    /// The system refused something that it may grant later.
    Passing(String),
}

/// What the worker is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Handshake,
    Initializer,
}

impl Phase {
    pub(super) fn limit(self, config: &Config) -> Duration {
        match self {
            Self::Handshake => config.start_timeout,
            Self::Initializer => config.setup.timeout,
        }
    }

    /// Words for its not having come to an end.
    pub(super) fn incomplete(self) -> &'static str {
        match self {
            Self::Handshake => "it did not complete the handshake",
            Self::Initializer => "its initializer did not return",
        }
    }

    pub(super) fn setting(self) -> &'static str {
        match self {
            Self::Handshake => "start_timeout",
            Self::Initializer => "initializer_timeout",
        }
    }
}

/// Another message than the one that is due.
pub(super) fn unexpected(message: FromWorkerControl) -> Trouble {
    garbage(match message {
        FromWorkerControl::Refused { reason } => {
            return Trouble::Permanent(format!("it refused: {reason}"));
        }
        FromWorkerControl::Answer(_) => "a second answer",
        FromWorkerControl::Section { .. } => "the begin of a section before there was a task",
        FromWorkerControl::Ready => "`ready` when it was not due",
        FromWorkerControl::Initialised | FromWorkerControl::InitializerFailed { .. } => {
            "news of an initializer when none was due"
        }
    })
}

pub(super) fn garbage(what: &str) -> Trouble {
    Trouble::Permanent(format!(
        "it sent {what}; the program that was started is not a worker of this release"
    ))
}

/// Ends the process and says in one sentence what happened.
pub(super) fn explain(
    shared: &Shared,
    newborn: &Newborn,
    phase: Phase,
    trouble: Trouble,
) -> Failure {
    // A process that may not be killed is not waited for; others are gone, or are soon.
    let killed = newborn.process.signal_group(Signal::Kill);
    let exit = killed.and_then(|()| newborn.process.reap());
    let (last_words, lines) = shared.console.last_words(&newborn.output);
    if let Some(lines) = lines {
        // Nobody waits for this thread.
        shared.console.wait_until_told(lines);
    }
    let when = match phase {
        Phase::Handshake => "it ended before the handshake was complete",
        Phase::Initializer => "it ended in its initializer",
    };
    let (permanent, what) = match (trouble, exit) {
        (Trouble::Permanent(what), _) => (true, what),
        (Trouble::Passing(what), _) => (false, what),
        (Trouble::Gone, Ok(exit)) => {
            let known =
                exit_code::describe_exit(exit).map(|text| format!(", {text}")).unwrap_or_default();
            (false, format!("{when}: {exit}{known}"))
        }
        (Trouble::Gone, Err(error)) => (false, format!("{when} ({error})")),
    };
    let mut reason =
        format!("{} (pid {}) could not be started: {what}", newborn.worker, newborn.process.pid());
    if let Some(line) = last_line(&last_words) {
        reason.push_str("; its last line on stderr: ");
        reason.push_str(line);
    }
    Failure { permanent, reason }
}
