//! The limit on the size of files, which also applies to shared memory.

use std::io;

use rustix::process::{Resource, getrlimit};

/// Returns the maximum size of a file of this process (`RLIMIT_FSIZE`); `None` for no limit.
pub(crate) fn current() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// Checks that a file of `bytes` bytes may be created. The system does not refuse a file that is
/// too large: it ends the process with SIGXFSZ.
///
/// # Errors
/// `FileTooLarge`, with the limit and the way to raise it.
pub fn check(bytes: u64) -> io::Result<()> {
    match current() {
        Some(limit) if limit < bytes => {
            let problem = format!(
                "{bytes} bytes of shared memory exceed the file size limit (RLIMIT_FSIZE) of {limit}; raise it with `ulimit -f`"
            );
            Err(io::Error::new(io::ErrorKind::FileTooLarge, problem))
        }
        _ => Ok(()),
    }
}
