//! The environment, working directory and standard streams of worker processes.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brigade_sys::catch_panic::catch_panic;
use brigade_wire::version::MARKER;

use crate::command_line::CommandLine;
use crate::error::EnvError;

/// Destination of the workers' stdout and stderr.
///
/// The end of a worker's stderr is kept in any case, for the error of a task that was running when
/// the worker died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Stdio {
    /// The host's own stdout and stderr. What a worker in a sandbox prints to stdout is copied
    /// there, perhaps after the outcome of its task.
    #[default]
    Inherit,
    /// Discarded.
    Null,
    /// `tracing` events, one per line, with the level `INFO`, the target `brigade::output` and the
    /// fields `pool`, `worker`, `pid`, `stream` (`stdout` or `stderr`) and `line`.
    ///
    /// A line longer than 8 KiB is split into several events. When a worker ends, its last line is
    /// emitted even without a newline, and before the outcome of the task that was running, unless
    /// the subscriber takes longer than a second. Each of the two streams keeps its order, but
    /// there is no order between them. A slow subscriber slows down the workers that write.
    Capture,
}

/// Settings for every process that a pool starts. They override those of its command.
#[derive(Debug, Clone, Default)]
pub struct ProcessEnv {
    of_slot: Option<SlotVariables>,
    /// In the order of the calls; the last entry for a variable wins.
    environment: Vec<(OsString, Option<OsString>)>,
    directory: Option<PathBuf>,
    /// Destination of the output.
    pub stdio: Stdio,
}

/// Returns the variables of a slot. User code.
#[derive(Clone)]
struct SlotVariables(Arc<dyn Fn(u32) -> Variables + Send + Sync>);

/// Variables with their values.
type Variables = Vec<(OsString, OsString)>;

impl ProcessEnv {
    /// Sets a variable, or removes it.
    pub fn set(&mut self, key: &OsStr, value: Option<&OsStr>) {
        self.environment.push((key.to_owned(), value.map(ToOwned::to_owned)));
    }

    /// Sets variables by the slot of the worker, which override the others.
    pub fn set_by_slot(&mut self, variables: impl Fn(u32) -> Variables + Send + Sync + 'static) {
        self.of_slot = Some(SlotVariables(Arc::new(variables)));
    }

    /// Sets the working directory.
    pub fn set_directory(&mut self, path: &Path) {
        self.directory = Some(path.to_owned());
    }

    /// Returns `true` if a variable is set or removed.
    pub fn has_variables(&self) -> bool {
        !self.environment.is_empty() || self.of_slot.is_some()
    }

    /// Returns `true` if variables are set by the slot of the worker.
    pub fn is_by_slot(&self) -> bool {
        self.of_slot.is_some()
    }

    /// Returns `true` if the working directory is set.
    pub fn has_directory(&self) -> bool {
        self.directory.is_some()
    }

    /// Checks that every variable can be set and that the directory exists, and makes its path
    /// absolute, because this process may change its own directory later.
    pub fn check(mut self) -> Result<Self, EnvError> {
        for (key, value) in &self.environment {
            let field = if value.is_some() { "env" } else { "env_remove" };
            check_variable(field, key, value.as_deref())?;
        }
        if let Some(path) = self.directory {
            self.directory = Some(check_directory(&path)?);
        }
        if self.stdio == Stdio::Null {
            check_null()?;
        }
        Ok(self)
    }

    /// Returns the variables of a slot. Calls user code.
    pub(crate) fn of_slot(&self, slot: u32) -> Result<Variables, EnvError> {
        const FIELD: &str = "env_per_slot";
        let Some(SlotVariables(of_slot)) = &self.of_slot else { return Ok(Vec::new()) };
        let variables = catch_panic(|| of_slot(slot)).map_err(|message| EnvError {
            field: FIELD,
            problem: format!("it panicked for slot {slot}: {message}"),
        })?;
        for (key, value) in &variables {
            check_variable(FIELD, key, Some(value))?;
        }
        Ok(variables)
    }

    pub(crate) fn apply(&self, line: &mut CommandLine) {
        for (key, value) in &self.environment {
            line.set(key.clone(), value.clone());
        }
        if let Some(directory) = &self.directory {
            line.directory = Some(directory.clone());
        }
    }
}

brigade_sys::debug_fields!(impl SlotVariables {});

/// Environment variables that tell libraries how many threads to start. They are set to the number
/// of a worker's cores, unless the user has set them, because threads in excess of the cores only
/// compete with each other.
const THREAD_VARIABLES: [&str; 6] = [
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
];

/// Sets the number of threads that libraries start.
pub(crate) fn limit_threads(line: &mut CommandLine, threads: usize) {
    for variable in THREAD_VARIABLES {
        let is_set = std::env::var_os(variable).is_some()
            || line.environment.iter().any(|(key, _)| key == variable);
        if !is_set {
            line.set(variable.into(), Some(threads.to_string().into()));
        }
    }
}

/// Returns an error if the system cannot set the variable.
pub fn check_variable(
    field: &'static str,
    key: &OsStr,
    value: Option<&OsStr>,
) -> Result<(), EnvError> {
    let name = key.to_string_lossy();
    let problem = if key.is_empty() {
        "the name of a variable must not be empty".to_owned()
    } else if key.as_bytes().contains(&b'=') || key.as_bytes().contains(&0) {
        format!("{name:?} is not a valid variable name: it must contain neither `=` nor NUL")
    } else if value.is_some_and(|value| value.as_bytes().contains(&0)) {
        format!("the value of {name:?} must not contain NUL")
    } else if key == MARKER {
        format!("{MARKER} is reserved: it marks a process as a worker")
    } else {
        return Ok(());
    };
    Err(EnvError { field, problem })
}

fn check_null() -> Result<(), EnvError> {
    File::options().write(true).open("/dev/null").map(drop).map_err(|error| {
        let problem =
            format!("cannot open /dev/null: {error}; mount /dev, or use `Stdio::Capture`");
        EnvError { field: "stdio", problem }
    })
}

fn check_directory(path: &Path) -> Result<PathBuf, EnvError> {
    let wrong = |problem| EnvError { field: "current_dir", problem };
    let found = std::fs::metadata(path)
        .map_err(|error| wrong(format!("cannot access {}: {error}", path.display())))?;
    if !found.is_dir() {
        return Err(wrong(format!("{} is not a directory", path.display())));
    }
    std::path::absolute(path)
        .map_err(|error| wrong(format!("cannot make {} absolute: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field_of(result: Result<ProcessEnv, EnvError>) -> &'static str {
        match result {
            Err(EnvError { field, .. }) => field,
            other => panic!("expected a configuration error, got {other:?}"),
        }
    }

    #[test]
    fn invalid_variables_are_refused() {
        for (key, value) in [("", "x"), ("a=b", "x"), ("a\0", "x"), ("a", "x\0"), (MARKER, "1:1")] {
            let (key, value) = (OsStr::new(key), OsStr::new(value));
            let mut process_env = ProcessEnv::default();
            process_env.set(key, Some(value));
            assert_eq!(field_of(process_env.check()), "env", "{key:?}");
        }
        let mut process_env = ProcessEnv::default();
        process_env.set(OsStr::new("="), None);
        assert_eq!(field_of(process_env.check()), "env_remove");
    }

    #[test]
    fn invalid_variables_of_a_slot_are_named() {
        let problem = |key: &'static str, value: &'static str| {
            let mut process_env = ProcessEnv::default();
            process_env.set_by_slot(move |_| vec![(key.into(), value.into())]);
            process_env.of_slot(3).unwrap_err().to_string()
        };
        assert!(problem("A=B", "x").contains("env_per_slot: \"A=B\""), "{}", problem("A=B", "x"));
        assert!(problem("PORT", "x\0").contains("value of \"PORT\""));
        assert!(problem(MARKER, "x").contains(MARKER));
        let mut process_env = ProcessEnv::default();
        process_env.set_by_slot(|slot| panic!("no variables for {slot}"));
        let error = process_env.of_slot(3).unwrap_err();
        assert!(error.to_string().contains("panicked for slot 3: no variables for 3"), "{error}");
    }

    #[test]
    fn paths_that_are_not_directories_are_refused() {
        for path in ["/nowhere/to/be/found", "/dev/null", ""] {
            let mut process_env = ProcessEnv::default();
            process_env.set_directory(Path::new(path));
            assert_eq!(field_of(process_env.check()), "current_dir", "{path:?}");
        }
    }

    #[test]
    fn the_last_setting_of_a_variable_wins() {
        let mut process_env = ProcessEnv::default();
        let (key, value) = (OsStr::new("KEY"), OsStr::new("value"));
        process_env.set(key, Some(value));
        process_env.set(key, None);
        process_env.set_directory(Path::new("."));
        let mut line = CommandLine::of_this_program();
        process_env.check().unwrap().apply(&mut line);
        assert_eq!(line.environment, [(key.to_owned(), None)]);
        assert!(line.directory.unwrap().is_absolute());
    }
}
