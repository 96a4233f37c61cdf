//! The sandbox that a worker enters before its first task.

use std::os::fd::OwnedFd;

use brigade_sys::confine::{Confinement, Restrictions};
use brigade_sys::sibling::single_thread;

/// A sandbox of the host's greeting.
#[derive(Debug)]
pub(crate) struct WorkerSandbox {
    restrictions: Restrictions,
    pub(crate) before_initializer: bool,
}

impl WorkerSandbox {
    pub(crate) fn new(confinement: Confinement, files: Option<OwnedFd>) -> Self {
        let before_initializer = confinement.before_initializer;
        let restrictions = confinement.restrictions(files).of_this_process();
        Self { restrictions, before_initializer }
    }

    /// Enters it, for good. The error can follow "the worker could not be started: ".
    pub(crate) fn enter(self) -> Result<(), String> {
        single_thread().map_err(|reason| {
            format!(
                "{reason}, and a sandbox reaches only the first; end those of the initializer, \
                 start them in the first task, or use `Sandbox::before_initializer`; an allocator \
                 must have none"
            )
        })?;
        self.restrictions.apply().map_err(|(what, error)| format!("it cannot {what}: {error}"))
    }
}
