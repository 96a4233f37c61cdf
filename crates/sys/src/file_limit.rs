//! The limit on the size of files, which holds for shared memory too.

use std::io;

use rustix::process::{Resource, getrlimit};

/// The most bytes that a file of this process may have (`RLIMIT_FSIZE`); `None` for no limit.
pub(crate) fn current() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// Checks that a file of `bytes` bytes may be made. The system does not refuse one that is too large: it ends the process, by
/// SIGXFSZ.
///
/// # Errors
/// `FileTooLarge`, with the limit and what sets it.
pub fn check(bytes: u64) -> io::Result<()> {
    match current() {
        Some(limit) if limit < bytes => {
            let problem = format!(
                "{bytes} bytes of shared memory are needed and the limit on the size of files (RLIMIT_FSIZE) is {limit}; raise it with `ulimit -f`"
            );
            Err(io::Error::new(io::ErrorKind::FileTooLarge, problem))
        }
        _ => Ok(()),
    }
}
