//! Failures of a start that another try would meet too.

use std::ffi::OsStr;
use std::io;

use brigade_sys::launch::{LaunchError, LaunchStage};

use crate::command_line::CommandLine;

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
