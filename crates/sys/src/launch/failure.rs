//! The reason why a program could not be started.

use std::fmt;
use std::io;

/// The program could not be started; no child is left.
#[derive(thiserror::Error)]
#[error("cannot {stage}")]
pub struct LaunchError {
    stage: LaunchStage,
    #[source]
    source: io::Error,
}

/// The step of a start that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LaunchStage {
    /// Creating the process, or binding it to its parent.
    Process,
    /// Pinning it to its processors.
    Affinity,
    /// Lowering its priority.
    Nice,
    /// Setting its limits.
    Limits,
    /// Entering its folder.
    Folder,
    /// Connecting its standard streams.
    Streams,
    /// Entering its sandbox.
    Sandbox,
    /// Executing the program itself.
    Program,
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

impl fmt::Display for LaunchStage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Process => "create a process",
            Self::Affinity => "pin the process to its cores",
            Self::Nice => "change the priority",
            Self::Limits => "set its limits",
            Self::Folder => "enter the folder",
            Self::Streams => "connect the standard streams",
            Self::Sandbox => "enter the sandbox",
            Self::Program => "execute the program",
        })
    }
}

crate::debug_as_text!(LaunchError);
