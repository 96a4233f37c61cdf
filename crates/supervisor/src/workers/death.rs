//! The end of a worker's process.

use brigade_crash::{CrashReport, End, Stack};
use brigade_sys::process::Exit;

use crate::workers::verdict::Verdict;

/// The end of a process.
#[derive(Debug, Clone)]
pub struct Death {
    /// Exit status.
    pub exit: Exit,
    /// The last bytes on standard error.
    pub stderr_tail: String,
    /// The report of the crash, if the process crashed.
    pub crash: Option<CrashReport>,
    /// The stack before the process was killed, if it was asked for and has answered.
    pub stack: Option<Stack>,
    /// The way in which its task went too far, if it did.
    pub verdict: Option<Verdict>,
}

impl Death {
    /// Returns the end of a process without a report of a crash.
    pub fn new(exit: Exit, stderr_tail: String) -> Self {
        Self { exit, stderr_tail, crash: None, stack: None, verdict: None }
    }

    /// Returns the end of a process in words.
    pub fn end(&self) -> End<'_> {
        End { exit: self.exit, crash: self.crash.as_ref() }
    }
}
