//! How a job has ended, and what it has used.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use brigade_sys::launch::LaunchError;
use brigade_sys::process::{Exit, signal_name};

use crate::job::Job;
use crate::output::Captured;

/// All that is known of a job that is over.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The job's number, from 1.
    pub number: u64,
    /// The job itself.
    pub job: Arc<Job>,
    /// How its last attempt ended.
    pub ending: Ending,
    /// How many attempts it took; none if the run ended before it was started.
    pub attempts: u32,
    /// On which place of the run it ran, from 1; no two jobs have the same at a time. 0 if the run ended before its next
    /// attempt was started.
    pub slot: usize,
    /// The cores it was pinned to, by their numbers; empty if it was not.
    pub cores: Vec<u32>,
    /// From the start of the run to that of the last attempt.
    pub started: Duration,
    /// How long the last attempt took.
    pub wall: Duration,
    /// Processor time in user mode, of the last attempt with all children that it waited for.
    pub user: Duration,
    /// Processor time in the kernel, likewise.
    pub system: Duration,
    /// The largest resident memory of one of its processes, in bytes.
    pub peak_memory: u64,
    /// What it printed.
    pub stdout: Captured,
    /// What it complained.
    pub stderr: Captured,
}

/// How an attempt has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it that was not ours.
    Signalled(i32),
    /// It took longer than the limit, and was ended.
    TimedOut {
        /// What it was allowed.
        limit: Duration,
    },
    /// It was ended because the run stopped.
    Stopped,
    /// It could not be started.
    NotStarted(StartFailure),
    /// It lives on: it was killed, but belongs to another user or waits for a device. Nobody looks after it any more.
    NotKilled,
}

/// Why an attempt could not be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartFailure {
    /// What could not be done, and why, for people.
    pub message: String,
    /// The code a shell would give: 127 if there is no such program, 126 if it cannot be executed.
    pub code: i32,
    /// Whether it lacked only what other jobs give back when they end.
    pub(crate) is_shortage: bool,
}

impl Ending {
    /// Whether the job did what it should: it exited with 0.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Exited(0))
    }

    /// Whether another attempt may end otherwise.
    pub(crate) fn is_worth_a_retry(&self) -> bool {
        match self {
            Self::Exited(code) => *code != 0,
            Self::Signalled(_) | Self::TimedOut { .. } => true,
            Self::Stopped | Self::NotStarted(_) | Self::NotKilled => false,
        }
    }
}

/// The exit code of a job whose status somebody else has taken.
const STATUS_LOST: i32 = -1;

impl From<Exit> for Ending {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Self::Exited(code),
            Exit::Signal(signal) => Self::Signalled(signal),
            // The command has no word for it; the event says what happened.
            _ => Self::Exited(STATUS_LOST),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(formatter, "exit code {code}"),
            Self::Signalled(signal) => match signal_name(*signal) {
                Some(name) => write!(formatter, "killed by {name}"),
                None => write!(formatter, "killed by signal {signal}"),
            },
            Self::TimedOut { limit } => {
                write!(formatter, "took longer than {:.3} s", limit.as_secs_f64())
            }
            Self::Stopped => formatter.write_str("stopped with the run"),
            Self::NotStarted(failure) => formatter.write_str(&failure.message),
            Self::NotKilled => formatter.write_str(
                "it cannot be killed, and still runs: end it as the user that it belongs to",
            ),
        }
    }
}

impl StartFailure {
    pub(crate) fn of_program(program: &str, error: &LaunchError) -> Self {
        use brigade_sys::launch::LaunchStage;
        let cause = error.cause();
        let message = match (error.stage(), cause.kind(), cause.raw_os_error()) {
            (LaunchStage::Program, io::ErrorKind::NotFound, _) if program.contains('/') => {
                format!(
                    "there is no program `{program}` (or the interpreter in its #! line is missing)"
                )
            }
            (LaunchStage::Program, io::ErrorKind::NotFound, _) => {
                format!("there is no program `{program}` on PATH")
            }
            (LaunchStage::Program, io::ErrorKind::PermissionDenied, _) => {
                format!(
                    "`{program}` is not executable: is it a file with the permission to execute?"
                )
            }
            (LaunchStage::Program, _, Some(ENOEXEC)) => {
                format!("`{program}` is no program: a script needs a first line like #!/bin/sh")
            }
            (LaunchStage::Program, _, Some(E2BIG)) => {
                "its arguments and environment are longer than the system allows".to_owned()
            }
            _ => format!("{error}: {cause}"),
        };
        let missing = cause.kind() == io::ErrorKind::NotFound;
        Self { message, code: if missing { 127 } else { 126 }, is_shortage: is_shortage(cause) }
    }

    pub(crate) fn other(message: String) -> Self {
        Self { message, code: 126, is_shortage: false }
    }

    pub(crate) fn of_io(what: &str, error: &io::Error) -> Self {
        Self { is_shortage: is_shortage(error), ..Self::other(format!("{what}: {error}")) }
    }
}

/// No descriptors, processes or memory are left.
fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EAGAIN | ENOMEM | ENFILE | EMFILE))
}

const EAGAIN: i32 = 11;
const ENOMEM: i32 = 12;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

/// "Exec format error": neither a program nor a script.
const ENOEXEC: i32 = 8;
/// "Argument list too long".
const E2BIG: i32 = 7;
