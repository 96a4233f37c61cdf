//! What a worker finds around it when it starts: environment, working folder, standard streams.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use brigade_wire::version::MARKER;

use crate::error::PoolError;

/// Where what workers write to stdout and stderr goes.
///
/// The end of a worker's stderr is kept in any case, for the error of a task under which it dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Stdio {
    /// To the host's own stdout and stderr.
    #[default]
    Inherit,
    /// Nowhere.
    Null,
    /// Line by line into `tracing` events of the level `INFO` with the target `brigade::output` and the fields `pool`,
    /// `worker`, `pid`, `stream` (`stdout` or `stderr`) and `line`.
    ///
    /// A line of more than 8 KiB comes in several events. What a worker wrote last comes at its end, with or without a
    /// newline, and before the outcome of the task that ran, if it is taken within a second. The two streams keep their own order each, and none between
    /// them. Whoever handles the events slowly slows down the workers that write.
    Capture,
}

/// Settings for every process that a pool starts; they win over those of its command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings {
    /// In the order of the calls: the last one for a variable counts.
    environment: Vec<(OsString, Option<OsString>)>,
    directory: Option<PathBuf>,
    pub(crate) stdio: Stdio,
}

impl Surroundings {
    pub(crate) fn set(&mut self, key: &OsStr, value: Option<&OsStr>) {
        self.environment.push((key.to_owned(), value.map(ToOwned::to_owned)));
    }

    pub(crate) fn set_directory(&mut self, path: &Path) {
        self.directory = Some(path.to_owned());
    }

    /// Every variable can be set, and the folder is there, wherever this process moves later.
    pub(crate) fn check(mut self) -> Result<Self, PoolError> {
        for (key, value) in &self.environment {
            let field = if value.is_some() { "env" } else { "env_remove" };
            check_variable(field, key, value.as_deref())?;
        }
        if let Some(path) = self.directory {
            self.directory = Some(check_directory(&path)?);
        }
        Ok(self)
    }

    pub(crate) fn apply(&self, command: &mut Command) {
        for (key, value) in &self.environment {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
    }
}

/// Whether the system can carry a variable.
pub(crate) fn check_variable(
    field: &'static str,
    key: &OsStr,
    value: Option<&OsStr>,
) -> Result<(), PoolError> {
    let name = key.to_string_lossy();
    let problem = if key.is_empty() {
        "the name of a variable must not be empty".to_owned()
    } else if key.as_bytes().contains(&b'=') || key.as_bytes().contains(&0) {
        format!("{name:?} cannot be the name of a variable: it must contain neither `=` nor NUL")
    } else if value.is_some_and(|value| value.as_bytes().contains(&0)) {
        format!("the value of {name:?} must not contain NUL")
    } else if key == MARKER {
        format!("{MARKER} is what makes a process a worker; leave it to the pool")
    } else {
        return Ok(());
    };
    Err(PoolError::Configuration { field, problem })
}

fn check_directory(path: &Path) -> Result<PathBuf, PoolError> {
    let wrong = |problem| PoolError::Configuration { field: "current_dir", problem };
    let found = std::fs::metadata(path)
        .map_err(|error| wrong(format!("{} cannot be used: {error}", path.display())))?;
    if !found.is_dir() {
        return Err(wrong(format!("{} is not a folder", path.display())));
    }
    std::path::absolute(path)
        .map_err(|error| wrong(format!("{} cannot be made absolute: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field_of(result: Result<Surroundings, PoolError>) -> &'static str {
        match result {
            Err(PoolError::Configuration { field, .. }) => field,
            other => panic!("no error of a setting but {other:?}"),
        }
    }

    #[test]
    fn variables_that_no_process_can_have_are_refused() {
        for (key, value) in [("", "x"), ("a=b", "x"), ("a\0", "x"), ("a", "x\0"), (MARKER, "1:1")] {
            let (key, value) = (OsStr::new(key), OsStr::new(value));
            let mut surroundings = Surroundings::default();
            surroundings.set(key, Some(value));
            assert_eq!(field_of(surroundings.check()), "env", "{key:?}");
        }
        let mut surroundings = Surroundings::default();
        surroundings.set(OsStr::new("="), None);
        assert_eq!(field_of(surroundings.check()), "env_remove");
    }

    #[test]
    fn folders_that_are_none_are_refused() {
        for path in ["/nowhere/to/be/found", "/dev/null", ""] {
            let mut surroundings = Surroundings::default();
            surroundings.set_directory(Path::new(path));
            assert_eq!(field_of(surroundings.check()), "current_dir", "{path:?}");
        }
    }

    #[test]
    fn the_last_setting_of_a_variable_counts() {
        let mut surroundings = Surroundings::default();
        let (key, value) = (OsStr::new("KEY"), OsStr::new("value"));
        surroundings.set(key, Some(value));
        surroundings.set(key, None);
        surroundings.set_directory(Path::new("."));
        let mut command = brigade_sys::process::command("true");
        surroundings.check().unwrap().apply(&mut command);
        assert_eq!(command.get_envs().collect::<Vec<_>>(), [(key, None)]);
        assert!(command.get_current_dir().unwrap().is_absolute());
    }
}
