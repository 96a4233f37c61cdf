//! Copies the test's own process by `fork`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brigade_sys::fork::Origin;
use brigade_testkit_sys::misdeeds;
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::processes::{Signal, hit_child};
use crate::{BOUND, wait_for};

/// The process in which a thread continues after [`copy_process`].
#[derive(Debug)]
pub enum Side {
    /// The test's process.
    Original(Copied),
    /// The copy.
    Copy(InTheCopy),
}

/// The copy, as seen by the original.
#[derive(Debug)]
#[must_use = "somebody has to wait for the copy"]
pub struct Copied(Pid);

/// The only thread of the copy.
#[derive(Debug)]
pub struct InTheCopy(Origin);

/// Copies this process without its other threads.
///
/// # Panics
/// Panics if the system has no room for another process.
pub fn copy_process() -> Side {
    let origin = Origin::here();
    match misdeeds::fork().expect("the process forks") {
        None => Side::Copy(InTheCopy(origin)),
        Some(pid) => {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            Side::Original(Copied(pid.expect("fork returns a valid pid")))
        }
    }
}

impl InTheCopy {
    /// Ends the copy after `check`, which panics if something is wrong.
    pub fn end_after(self, check: impl FnOnce()) -> ! {
        if catch_unwind(AssertUnwindSafe(check)).is_ok() {
            self.0.end_copy();
        }
        std::process::abort()
    }
}

impl Copied {
    /// Waits for the copy to end and checks that it succeeded.
    ///
    /// # Panics
    /// Panics if the copy failed or hangs.
    #[track_caller]
    pub fn assert_success(self) {
        let look = || waitpid(Some(self.0), WaitOptions::NOHANG).expect("the copy is a child");
        let (_, status) = wait_for("the end of a copy", BOUND, look);
        assert_eq!(status.exit_status(), Some(0), "{status:?}");
    }
}

/// Kills a copy that hangs.
impl Drop for Copied {
    fn drop(&mut self) {
        if hit_child(self.0.as_raw_nonzero().get().unsigned_abs(), Signal::KILL) {
            // It is dead, or about to die.
            let _ = waitpid(Some(self.0), WaitOptions::empty());
        }
    }
}
