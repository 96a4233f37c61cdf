//! The outcome of a job: how it ended, what it printed and what it used.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use brigade_sandbox::Limit;
use brigade_supervisor::Captured;
use brigade_sys::launch::LaunchError;
use brigade_sys::process::{Exit, signal_name};

use crate::job::{Command, Job};

/// Number of bytes of an output that are searched for its last lines.
const TAIL_BYTES: usize = 4096;

/// Everything known about a job that is over.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The job's number, from 1.
    pub number: u64,
    /// The job itself.
    pub job: Arc<Job>,
    /// The result of its last attempt.
    pub ending: Ending,
    /// `true` if this outcome met the run's halt policy.
    pub is_decisive: bool,
    /// Number of attempts made; 0 if the run ended before the first one.
    pub attempts: u32,
    /// The slot it ran on, from 1; no two jobs share a slot at a time. 0 if the run ended before
    /// its next attempt started.
    pub slot: usize,
    /// The number that replaced the marker of the slot, if it is not `slot`.
    pub(crate) marked_slot: Option<usize>,
    /// The host that it ran on, if it ran on a cluster.
    pub host: Option<Arc<str>>,
    /// Numbers of the cores it was pinned to; empty if it was not pinned.
    pub cores: Vec<u32>,
    /// Time from the start of the run to the start of the last attempt.
    pub started: Duration,
    /// The time of day at the start of the last attempt. Meaningless if there was none.
    pub started_at: SystemTime,
    /// Duration of the last attempt.
    pub wall: Duration,
    /// Processor time of the last attempt in user mode, including all children that it waited for.
    pub user: Duration,
    /// Processor time in the kernel, including the same children.
    pub system: Duration,
    /// The largest resident memory of any one of its processes, in bytes. `None` if it is about
    /// that of this process or less: the system counts a program from the moment when it still
    /// shares the memory of the process that starts it.
    pub peak_memory: Option<u64>,
    /// Captured standard output.
    pub stdout: Captured,
    /// Captured standard error.
    pub stderr: Captured,
}

impl Outcome {
    /// Returns the outcome of a job of which no attempt was made.
    pub(crate) fn not_started(number: u64, job: Arc<Job>) -> Self {
        Self {
            number,
            job,
            ending: Ending::Stopped,
            is_decisive: false,
            attempts: 0,
            slot: 0,
            marked_slot: None,
            host: None,
            cores: Vec::new(),
            started: Duration::ZERO,
            started_at: SystemTime::UNIX_EPOCH,
            wall: Duration::ZERO,
            user: Duration::ZERO,
            system: Duration::ZERO,
            peak_memory: None,
            stdout: Captured::default(),
            stderr: Captured::default(),
        }
    }

    /// Returns the command as it ran, with the number of its slot.
    pub fn command(&self) -> Command {
        self.job.command_on(self.marked_slot.unwrap_or(self.slot))
    }

    /// Returns the host as logs and tables have it, without characters that mean something there.
    pub(crate) fn host_column(&self) -> String {
        let plain = |letter: char| {
            let is_plain = letter.is_alphanumeric() || "-_.:".contains(letter);
            if is_plain { letter } else { '_' }
        };
        self.host
            .as_deref()
            .map_or_else(|| ":".to_owned(), |host| host.chars().map(plain).collect())
    }

    /// Returns the last lines, at most `count`, that the job printed on standard error, or on
    /// standard output if it printed nothing else.
    pub fn last_lines(&self, count: usize) -> Vec<String> {
        let tail = |captured: &Captured| captured.tail(TAIL_BYTES).unwrap_or_default();
        let mut bytes = tail(&self.stderr);
        if bytes.trim_ascii().is_empty() {
            bytes = tail(&self.stdout);
        }
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(count)..].iter().map(|line| (*line).to_owned()).collect()
    }

    /// Returns everything that the job has printed to standard output.
    ///
    /// # Errors
    /// Returns an error if it was not kept whole (see [`Output`](crate::Output)) or cannot be read.
    pub fn stdout(&self) -> io::Result<Vec<u8>> {
        whole(&self.stdout)
    }

    /// Returns everything that the job has printed to standard error.
    ///
    /// # Errors
    /// As for [`stdout`](Self::stdout).
    pub fn stderr(&self) -> io::Result<Vec<u8>> {
        whole(&self.stderr)
    }
}

fn whole(captured: &Captured) -> io::Result<Vec<u8>> {
    if captured.dropped() > 0 {
        let dropped = captured.dropped();
        return Err(io::Error::other(format!(
            "{dropped} bytes of the output were not kept: set the output to `Output::Whole`"
        )));
    }
    captured.tail(usize::MAX)
}

/// The result of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "report", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Ending {
    /// It exited with this code.
    Exited(i32),
    /// It was ended by a signal that the runner did not send.
    Signalled(i32),
    /// It exceeded its time limit and was ended.
    TimedOut {
        /// The limit.
        limit: Duration,
    },
    /// It could not be started.
    NotStarted(StartFailure),
    /// It is still running: it was killed, but belongs to another user or waits for a device. The
    /// runner no longer watches it.
    NotKilled,
    /// It exceeded a limit on a resource, and was ended by the kernel.
    LimitExceeded {
        /// The limit.
        #[cfg_attr(feature = "report", serde(with = "limit_parts"))]
        limit: Limit,
    },
    /// It was ended because the run stopped.
    #[default]
    Stopped,
    /// It ran on a cluster, and what ran it is gone: nobody knows how it ended. The reason.
    Lost(String),
}

/// The reason why an attempt could not be started.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "report", derive(serde::Serialize, serde::Deserialize))]
pub struct StartFailure {
    /// The operation that failed and the reason, for people.
    pub message: String,
    /// The exit code that a shell would report: 127 if there is no such program, 126 if it cannot
    /// be executed.
    pub code: i32,
    /// `true` if it lacked only resources that other jobs return when they end.
    #[cfg_attr(feature = "report", serde(skip))]
    pub(crate) is_shortage: bool,
}

/// Limits as another process gets them.
#[cfg(feature = "report")]
mod limit_parts {
    use brigade_sandbox::Limit;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::{Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(limit: &Limit, to: S) -> Result<S::Ok, S::Error> {
        limit.to_parts().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Limit, D::Error> {
        let (kind, number) = Deserialize::deserialize(from)?;
        let unknown = || D::Error::custom("it exceeded a limit that this version does not know");
        Limit::from_parts(kind, number).ok_or_else(unknown)
    }
}

impl Ending {
    /// Returns `true` if the job exited with code 0.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Exited(0))
    }

    /// Returns `true` if another attempt may end differently.
    pub(crate) fn is_worth_a_retry(&self) -> bool {
        match self {
            Self::Exited(code) => *code != 0,
            Self::Signalled(_)
            | Self::TimedOut { .. }
            | Self::LimitExceeded { .. }
            | Self::Lost(_) => true,
            Self::Stopped | Self::NotStarted(_) | Self::NotKilled => false,
        }
    }
}

/// The exit code of a job whose status was collected by other code in this process.
const STATUS_LOST: i32 = -1;

impl From<Exit> for Ending {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Self::Exited(code),
            Exit::Signal(signal) => Self::Signalled(signal),
            // `Ending` has no variant for an unknown status; a logged warning says what happened.
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
                write!(formatter, "exceeded its time limit of {:.3} s", limit.as_secs_f64())
            }
            Self::LimitExceeded { limit } => write!(formatter, "exceeded its limit of {limit}"),
            Self::Stopped => formatter.write_str("stopped with the run"),
            Self::NotStarted(failure) => formatter.write_str(&failure.message),
            Self::Lost(reason) => write!(formatter, "lost: {reason}"),
            Self::NotKilled => formatter.write_str(
                "cannot be killed and is still running; end it as the user that owns it",
            ),
        }
    }
}

impl StartFailure {
    pub(crate) fn of_program(program: &str, is_sandboxed: bool, error: &LaunchError) -> Self {
        use brigade_sys::launch::LaunchStage;
        let cause = error.cause();
        let message = match (error.stage(), cause.kind(), cause.raw_os_error()) {
            (LaunchStage::Program, io::ErrorKind::NotFound, _) if program.contains('/') => {
                format!(
                    "program `{program}` not found (or the interpreter in its #! line is missing)"
                )
            }
            (LaunchStage::Program, io::ErrorKind::NotFound, _) => {
                format!("program `{program}` not found on PATH")
            }
            (LaunchStage::Program, io::ErrorKind::PermissionDenied, _) if is_sandboxed => {
                format!(
                    "`{program}` cannot be executed in its sandbox: allow its folder with \
                     `execute`, if the file has execute permission"
                )
            }
            (LaunchStage::Program, io::ErrorKind::PermissionDenied, _) => {
                format!("`{program}` is not executable: it must be a file with execute permission")
            }
            (LaunchStage::Program, _, Some(ENOEXEC)) => {
                format!("`{program}` is not a program: a script needs a first line like #!/bin/sh")
            }
            (LaunchStage::Program, _, Some(E2BIG)) => {
                "its arguments and environment are longer than the system allows".to_owned()
            }
            _ => format!("{error}: {cause}"),
        };
        let missing = cause.kind() == io::ErrorKind::NotFound;
        Self { message, code: if missing { 127 } else { 126 }, is_shortage: is_shortage(cause) }
    }

    /// Creates a failure other than a missing program.
    pub fn other(message: String) -> Self {
        Self { message, code: 126, is_shortage: false }
    }

    /// Returns what makes an error of the system a failure.
    pub(crate) fn io(what: &str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::of_io(what, &error)
    }

    pub(crate) fn of_io(what: &str, error: &io::Error) -> Self {
        Self { is_shortage: is_shortage(error), ..Self::other(format!("{what}: {error}")) }
    }
}

/// Returns `true` if the system is out of descriptors, processes or memory.
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
