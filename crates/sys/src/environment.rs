//! Changes the environment, which is allowed only while a single thread runs.

use std::env;
use std::ffi::{OsStr, OsString, c_char};
use std::ptr;

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

/// Replaces the whole environment. `entries` have a NUL byte at their ends, and anything before it:
/// a process may be started with variables that the functions for single ones refuse.
///
/// # Errors
/// [`EnvironmentError`]; then nothing was changed.
pub fn replace(entries: &[u8]) -> Result<(), EnvironmentError> {
    unsafe extern "C" {
        static mut environ: *mut *mut c_char;
    }
    require_one_thread()?;
    // Never freed, because the environment lasts as long as the process.
    let entries: &'static mut [u8] = Box::leak(entries.into());
    let pointers: Vec<*mut c_char> = entries
        .split_inclusive_mut(|byte| *byte == 0)
        .filter(|entry| entry.len() > 1 && entry.ends_with(b"\0"))
        .map(|entry| entry.as_mut_ptr().cast())
        .chain([ptr::null_mut()])
        .collect();
    // SAFETY: this is the only thread of the process, so nobody reads or writes the environment
    // meanwhile. The strings end with a zero and the list with a null pointer, and both stay.
    unsafe { environ = pointers.leak().as_mut_ptr() };
    Ok(())
}

pub(crate) fn require_one_thread() -> Result<(), EnvironmentError> {
    let threads = crate::confine::threads().map_err(EnvironmentError::CountThreads)?;
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

    #[test]
    fn any_entries_become_the_environment() {
        assert!(crate::fork::tests::in_a_copy(|| {
            // The second time it is also what is replaced.
            (0..2).all(|_| {
                replace(b"=odd=1\0A=2\0nothing\0B=\0").is_ok()
                    && env::vars_os().count() == 3
                    && env::var("=odd").as_deref() == Ok("1")
                    && env::var("A").as_deref() == Ok("2")
                    && env::var("B").as_deref() == Ok("")
                    && env::var_os("PATH").is_none()
            }) && with_var("B", "3", || env::var("B").as_deref() == Ok("3")).is_ok_and(|seen| seen)
        }));
    }
}
