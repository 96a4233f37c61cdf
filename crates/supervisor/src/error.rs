//! Errors of settings and starts.

use std::ffi::OsStr;
use std::io;

use brigade_sys::launch::{LaunchError, LaunchStage};
use brigade_wire::WorkerId;

use crate::command_line::CommandLine;

/// A part of a command line contains a NUL byte.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} contains a NUL byte, which cannot be passed to a program")]
pub struct ContainsNul(pub(crate) &'static str);

/// A setting of the workers' environment is invalid.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct EnvError {
    /// The setting.
    pub field: &'static str,
    /// The problem, and a remedy.
    pub problem: String,
}

/// A worker could not be started, and its process is gone.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct StartError {
    /// Another try would fail too.
    pub is_permanent: bool,
    /// One sentence.
    pub reason: String,
}

impl StartError {
    pub(crate) fn new(worker: WorkerId, is_permanent: bool, reason: &str) -> Self {
        Self { is_permanent, reason: format!("{worker} cannot be started: {reason}") }
    }
}

/// A failure that another try would meet too.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unusable(pub(crate) String);

/// Recognizes errors of a command line that does not start.
pub(crate) fn unless_unusable(line: &CommandLine, error: LaunchError) -> io::Error {
    let (path, setting): (&OsStr, _) = match error.stage() {
        LaunchStage::Program => (&line.program, "worker_command"),
        LaunchStage::Folder => {
            (line.directory.as_ref().map_or(OsStr::new(""), |it| it.as_ref()), "current_dir")
        }
        _ => return error.into_cause(),
    };
    if !error.is_lasting() {
        return error.into_cause();
    }
    let text = format!("{error} {}: {}; correct `{setting}`", path.display(), error.cause());
    io::Error::other(Unusable(text))
}

brigade_sys::debug_as_text!(ContainsNul);
brigade_sys::debug_as_text!(EnvError, StartError);
