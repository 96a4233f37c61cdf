//! The limit on the number of open descriptors of a process.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of this process to its hard limit. Returns the previous soft limit; `None`
/// if there was none.
///
/// The soft limit exists for programs that call `select`, which fails for descriptors from 1024 on.
/// Give the previous limit to programs that this process starts.
///
/// # Errors
/// If the system refuses it.
pub fn raise() -> io::Result<Option<u64>> {
    let before = getrlimit(Resource::Nofile);
    if before.current != before.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum })?;
    }
    Ok(before.current)
}
