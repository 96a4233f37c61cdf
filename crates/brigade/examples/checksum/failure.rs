//! The reasons why a file has no digest.

use std::fmt;
use std::io;

use brigade::{Exit, TaskError, TaskErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The reason why a file has no digest.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It could not be read.
    Read(ReadFailure),
    /// The task failed: most likely its worker died.
    Task(TaskError),
}

/// An error of the system, which the worker returns as a value.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReadFailure {
    kind: String,
    message: String,
}

impl Failure {
    /// Returns the kind of failure for the summary.
    pub(crate) fn kind(&self) -> String {
        let error = match self {
            Self::Read(failure) => return failure.kind.clone(),
            Self::Task(error) => error,
        };
        match error.kind() {
            TaskErrorKind::WorkerDied { exit, .. } => format!("worker died: {exit}"),
            TaskErrorKind::Panicked { .. } => "panic".to_owned(),
            _ => "other".to_owned(),
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut object = json!({ "kind": self.kind(), "message": self.to_string() });
        if let Self::Task(error) = self {
            object["attempt"] = error.attempt().into();
            if let TaskErrorKind::WorkerDied { pid, exit, .. } = error.kind() {
                object["pid"] = (*pid).into();
                object["exit"] = match exit {
                    Exit::Code(code) => json!({ "code": code }),
                    Exit::Signal(number) => json!({ "signal": number }),
                    _ => json!("unknown"),
                };
            }
        }
        object
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(failure) => out.write_str(&failure.message),
            Self::Task(error) => error.fmt(out),
        }
    }
}

impl From<&io::Error> for ReadFailure {
    fn from(error: &io::Error) -> Self {
        let text = error.to_string();
        // Like other commands, omit the error number.
        let message = text.split(" (os error ").next().unwrap_or(&text).to_owned();
        // An error that is not from the system is its own kind.
        let kind = error.raw_os_error().map_or_else(|| text.clone(), |_| error.kind().to_string());
        Self { kind, message }
    }
}
