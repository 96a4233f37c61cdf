//! The number of descriptors that outputs waiting to be printed may use, and blocks of input; and
//! whether there is a standard output.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Resource, getrlimit};

/// The divisor of the limit that gives the share of held outputs, and that of blocks. Running jobs
/// need the rest: each takes a few descriptors.
const PART: usize = 8;
/// Number of descriptors that do not belong to jobs, at most.
const OWN: usize = 24;
/// Holding more files than this makes nothing faster.
const MAX: usize = 256;
/// The limit to assume if there is none.
const USUAL: usize = 1024;

/// Standard output was closed when this program was started. The standard library opens `/dev/null`
/// in its place before `main`, so nothing else tells that what is printed is lost.
static LACKS_STDOUT: AtomicBool = AtomicBool::new(false);

/// Looks whether standard output is closed. Call it before `main`.
pub(crate) fn look_for_stdout() {
    LACKS_STDOUT
        .store(rustix::io::fcntl_getfd(std::io::stdout().as_fd()).is_err(), Ordering::Relaxed);
}

/// Returns `true` if standard output was closed when this program was started.
pub(crate) fn lacks_stdout() -> bool {
    LACKS_STDOUT.load(Ordering::Relaxed)
}

/// Returns the number of files that may be held open.
pub(crate) fn most_held() -> usize {
    most_blocks().min(MAX)
}

/// Returns the number of blocks that may exist, those of running jobs included.
pub(crate) fn most_blocks() -> usize {
    (limit() / PART).max(1)
}

/// Returns the number of jobs that can run at once if each has a pipe for its input and two blocks.
pub(crate) fn most_streams() -> usize {
    (limit().saturating_sub(OWN) / PART).max(1)
}

fn limit() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(USUAL)
}
