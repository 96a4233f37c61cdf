//! The reason why a program could not be started.

use std::io;

/// The program could not be started; no child is left.
#[derive(thiserror::Error)]
#[error("cannot {stage}")]
pub struct LaunchError {
    stage: LaunchStage,
    #[source]
    source: io::Error,
}

crate::named! {
    /// The step of a start that failed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum LaunchStage, fn name {
        /// Creating the process, or binding it to its parent.
        Process = "create a process",
        /// Pinning it to its processors.
        Affinity = "pin the process to its cores",
        /// Lowering its priority.
        Nice = "change the priority",
        /// Setting its limits.
        Limits = "set its limits",
        /// Entering its folder.
        Folder = "enter the folder",
        /// Connecting its standard streams.
        Streams = "connect the standard streams",
        /// Entering its sandbox.
        Sandbox = "enter the sandbox",
        /// Executing the program itself.
        Program = "execute the program",
    }
}

impl LaunchError {
    pub(crate) fn new(stage: LaunchStage, source: io::Error) -> Self {
        Self { stage, source }
    }

    /// Returns the step that failed.
    pub fn stage(&self) -> LaunchStage {
        self.stage
    }

    /// Returns the cause.
    pub fn cause(&self) -> &io::Error {
        &self.source
    }

    /// Returns `true` if another try would fail too: there is no such program or folder, or it may
    /// not be used.
    pub fn is_lasting(&self) -> bool {
        let of_the_path = matches!(self.stage, LaunchStage::Program | LaunchStage::Folder);
        of_the_path
            && matches!(
                self.source.raw_os_error(),
                Some(libc::ENOENT | libc::EACCES | libc::ENOEXEC | libc::ENOTDIR | libc::ELOOP)
            )
    }

    /// Returns the cause alone.
    pub fn into_cause(self) -> io::Error {
        self.source
    }
}

crate::debug_as_text!(LaunchError);
