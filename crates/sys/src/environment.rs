//! Changes the environment, which is allowed only while a single thread runs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

pub use crate::error::EnvironmentError;

/// Removes a variable from the environment and returns its value.
///
/// # Errors
/// [`EnvironmentError`]; then nothing was changed.
pub fn take(name: &str) -> Result<Option<OsString>, EnvironmentError> {
    let Some(value) = env::var_os(name) else {
        return Ok(None);
    };
    require_one_thread()?;
    // SAFETY: this is the only thread of the process, so nobody reads or writes the environment
    // meanwhile.
    unsafe { env::remove_var(name) };
    Ok(Some(value))
}

/// Runs `body` while a variable has another value, then restores it.
///
/// # Errors
/// [`EnvironmentError`]; then `body` did not run, or it has left a thread running and the variable
/// keeps `value`.
pub fn with_var<R>(
    name: &str,
    value: impl AsRef<OsStr>,
    body: impl FnOnce() -> R,
) -> Result<R, EnvironmentError> {
    require_one_thread()?;
    let before = env::var_os(name);
    // SAFETY: this is the only thread of the process, so nobody reads or writes the environment
    // meanwhile.
    unsafe { env::set_var(name, value) };
    let result = body();
    // `body` may have started a thread; then the new value must stay, because restoring would race.
    require_one_thread()?;
    match before {
        // SAFETY: see above, checked again.
        Some(before) => unsafe { env::set_var(name, before) },
        // SAFETY: see above, checked again.
        None => unsafe { env::remove_var(name) },
    }
    Ok(result)
}

/// Replaces the whole environment. `entries` are `NAME=value`, each with a NUL byte at its end.
///
/// # Errors
/// [`EnvironmentError`]; then nothing was changed.
pub fn replace(entries: &[u8]) -> Result<(), EnvironmentError> {
    require_one_thread()?;
    let before: Vec<OsString> = env::vars_os().map(|(name, _)| name).collect();
    for name in before {
        // SAFETY: this is the only thread of the process, so nobody reads or writes the environment
        // meanwhile.
        unsafe { env::remove_var(name) };
    }
    for entry in entries.split(|byte| *byte == 0) {
        // A name may begin with `=`, as the standard library allows.
        let Some(end) = entry.iter().skip(1).position(|byte| *byte == b'=') else { continue };
        let (name, value) = entry.split_at(end + 1);
        // SAFETY: see above.
        unsafe { env::set_var(OsStr::from_bytes(name), OsStr::from_bytes(&value[1..])) };
    }
    Ok(())
}

pub(crate) fn require_one_thread() -> Result<(), EnvironmentError> {
    // One link for each thread and two for the folder itself.
    let folder = std::fs::metadata("/proc/self/task").map_err(EnvironmentError::CountThreads)?;
    let threads = usize::try_from(folder.nlink()).unwrap_or(usize::MAX).saturating_sub(2);
    if threads == 1 { Ok(()) } else { Err(EnvironmentError::ThreadsRunning { threads }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_left_alone_while_threads_run() {
        let result = std::thread::scope(|scope| {
            let (done, until_done) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || until_done.recv());
            let result = take("PATH");
            drop(done);
            result
        });
        assert!(result.is_err());
        assert!(env::var_os("PATH").is_some());
    }

    #[test]
    fn a_missing_variable_is_not_an_error() {
        assert!(matches!(take("BRIGADE_NO_SUCH_VARIABLE"), Ok(None)));
    }
}
