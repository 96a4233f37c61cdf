//! The end of a process, as the system sees it.

use brigade_sys::process::Process;

use super::WorkerProcess;

impl WorkerProcess {
    /// Returns `true` if nothing of the process is left, or nothing waits for that.
    pub fn is_gone(&self) -> bool {
        self.is_left_behind() || !self.process().is_some_and(Process::is_unreaped)
    }
}
