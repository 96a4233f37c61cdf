//! The host's part of what a worker's process gets with the greeting.

use brigade_crash::Files;
use brigade_sys::crash::CrashArea;
use brigade_sys::lifeline::Lifeline;

use super::WorkerProcess;

impl WorkerProcess {
    /// Ends the process with this one from now on, and sets the memory for the records of its
    /// crashes, with the files that may be read for them.
    pub(crate) fn bind(&self, lifeline: Option<Lifeline>, crashes: Option<(CrashArea, Files)>) {
        let _ = lifeline.map(|lifeline| self.lifeline.set(lifeline));
        let _ = crashes.map(|crashes| self.crash_area.set(crashes));
    }

    pub(crate) fn crash_area(&self) -> Option<&(CrashArea, Files)> {
        self.crash_area.get()
    }

    /// Returns `true` if a process is the worker, and not a wrapper that has started it.
    pub(crate) fn is_worker(&self, pid: u32) -> bool {
        self.worker_pid.get() == Some(&pid)
    }
}
