//! Copies of the test's own process, as `fork` makes them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brigade_sys::fork::Origin;
use brigade_sys::misdeeds;
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::processes::{Signal, hit_child};
use crate::wait::{BOUND, wait_for};

/// Where a thread finds itself after [`copy_process`].
#[derive(Debug)]
pub enum Side {
    /// In the test's process.
    Original(Copied),
    /// In the copy.
    Copy(InTheCopy),
}

/// The copy, as the original sees it.
#[derive(Debug)]
#[must_use = "somebody has to wait for the copy"]
pub struct Copied(Pid);

/// The thread that is all there is in the copy.
#[derive(Debug)]
pub struct InTheCopy(Origin);

/// Copies this process, without its other threads.
///
/// # Panics
/// When the system has no room for another process.
pub fn copy_process() -> Side {
    let origin = Origin::here();
    match misdeeds::fork().expect("a copy") {
        None => Side::Copy(InTheCopy(origin)),
        Some(pid) => {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            Side::Original(Copied(pid.expect("the number of a process")))
        }
    }
}

impl InTheCopy {
    /// Ends the copy after the check, which panics if something is wrong.
    pub fn end_after(self, check: impl FnOnce()) -> ! {
        if catch_unwind(AssertUnwindSafe(check)).is_ok() {
            self.0.end_copy();
        }
        std::process::abort()
    }
}

impl Copied {
    /// Waits for the end of the copy, whose check must not fail.
    ///
    /// # Panics
    /// When it has failed, or the copy hangs.
    #[track_caller]
    pub fn is_well(self) {
        let look = || waitpid(Some(self.0), WaitOptions::NOHANG).expect("a child");
        let (_, status) = wait_for("the end of a copy", BOUND, look);
        assert_eq!(status.exit_status(), Some(0), "{status:?}");
    }
}

/// A copy that hangs is killed.
impl Drop for Copied {
    fn drop(&mut self) {
        if hit_child(self.0.as_raw_nonzero().get().unsigned_abs(), Signal::KILL) {
            // It is dead, or about to be.
            let _ = waitpid(Some(self.0), WaitOptions::empty());
        }
    }
}
