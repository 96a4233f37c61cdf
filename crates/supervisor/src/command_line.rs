//! A program with its arguments.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use brigade_sys::process;

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
    /// Returns the command that starts the program.
    pub fn command(&self) -> Command {
        let mut command = process::command(&self.program);
        command.args(&self.arguments);
        change(&mut command, &self.environment, self.directory.as_deref());
        command
    }
}

/// Sets or removes variables of a command, and sets its working directory.
pub(crate) fn change(
    command: &mut Command,
    environment: &[(OsString, Option<OsString>)],
    directory: Option<&Path>,
) {
    for (key, value) in environment {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
}
