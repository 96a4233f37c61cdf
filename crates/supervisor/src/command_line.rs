//! A program with its arguments.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use brigade_sys::executable::Origin;
use brigade_sys::process::{THIS_PROGRAM, WORKER_NAME};

/// A program with its arguments, which can be started any number of times.
#[derive(Debug, Clone)]
pub struct CommandLine {
    /// Name or path.
    pub program: OsString,
    /// The name that the program sees as its own; `None` for `program`.
    pub name: Option<OsString>,
    /// Its arguments, without the name.
    pub arguments: Vec<OsString>,
    /// Variables to set, or to remove.
    pub environment: Vec<(OsString, Option<OsString>)>,
    /// Working directory; `None` for that of this process.
    pub directory: Option<PathBuf>,
}

impl From<&Command> for CommandLine {
    fn from(command: &Command) -> Self {
        Self {
            program: command.get_program().to_owned(),
            name: None,
            arguments: command.get_args().map(ToOwned::to_owned).collect(),
            environment: command
                .get_envs()
                .map(|(key, value)| (key.to_owned(), value.map(ToOwned::to_owned)))
                .collect(),
            directory: command.get_current_dir().map(ToOwned::to_owned),
        }
    }
}

impl CommandLine {
    /// Returns the command line of another process of this very program.
    pub(crate) fn of_this_program() -> Self {
        let origin = Origin::of_this_program().ok();
        Self {
            program: origin.map_or(THIS_PROGRAM.into(), |it| it.executed.clone().into()),
            name: Some(WORKER_NAME.into()),
            arguments: origin.map(|it| it.arguments.clone()).unwrap_or_default(),
            environment: Vec::new(),
            directory: None,
        }
    }

    /// Sets a variable, or removes it.
    pub(crate) fn set(&mut self, key: OsString, value: Option<OsString>) {
        self.environment.retain(|(other, _)| *other != key);
        self.environment.push((key, value));
    }
}
