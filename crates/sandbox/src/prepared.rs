//! A sandbox in the form in which a process gets it.

use std::os::fd::OwnedFd;

use brigade_sys::confine::{Filter, Restrictions};

use crate::report::SandboxReport;

/// A sandbox that was made once, for any number of processes.
#[derive(Debug, Default)]
pub struct Prepared {
    /// The rules of Landlock.
    pub files: Option<OwnedFd>,
    /// Filters of system calls, as the words of their instructions.
    pub filters: Vec<Vec<u64>>,
    /// The process gives up its capabilities.
    pub capabilities: bool,
    /// The sandbox holds before the initializer runs.
    pub before_initializer: bool,
    /// The process gets no variables of its host's environment.
    pub clears_environment: bool,
    /// The layers, and which of them hold.
    pub report: SandboxReport,
}

impl Prepared {
    /// Returns what a program gives up before it is executed.
    pub fn into_restrictions(self) -> Restrictions {
        let filters = self.filters.iter().map(|words| Filter::from_words(words)).collect();
        Restrictions { capabilities: self.capabilities, files: self.files, filters }
    }
}
