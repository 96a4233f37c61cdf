//! A sandbox in the form in which a process gets it.

use std::os::fd::OwnedFd;

use brigade_sys::confine::{Filter, Namespaces, Restrictions, View, Visible};

use crate::report::SandboxReport;

/// A sandbox that was made once, for any number of processes.
#[derive(Debug, Default)]
pub struct Prepared {
    /// The namespaces that the process makes for itself.
    pub isolation: Option<Isolation>,
    /// The rules of Landlock.
    pub files: Option<OwnedFd>,
    /// Filters of system calls, as the words of their instructions.
    pub filters: Vec<Vec<u64>>,
    /// The process gives up its capabilities, except for those with which root reads files and, if
    /// it is `true`, writes them.
    pub capabilities: Option<bool>,
    /// The highest limits that the process could set become those that it has.
    pub lowers_limits: bool,
    /// The sandbox holds before the initializer runs.
    pub before_initializer: bool,
    /// The process gets no variables of its host's environment.
    pub clears_environment: bool,
    /// The layers, and which of them hold.
    pub report: SandboxReport,
}

/// Namespaces that a process makes for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolation {
    /// It has no network.
    pub network: bool,
    /// The files that stay visible; `None` for all.
    pub files: Option<Vec<Visible>>,
}

impl Isolation {
    /// Returns it in the form that a process can use.
    pub fn namespaces(&self) -> Namespaces {
        Namespaces { network: self.network, view: self.files.clone().map(View::new) }
    }
}

impl Prepared {
    /// Returns what a program gives up before it is executed.
    pub fn into_restrictions(self) -> Restrictions {
        let filters = self.filters.iter().map(|words| Filter::from_words(words)).collect();
        Restrictions {
            namespaces: self.isolation.as_ref().map(Isolation::namespaces),
            capabilities: self.capabilities,
            files: self.files,
            limits: Vec::new(),
            lowers_limits: self.lowers_limits,
            filters,
        }
    }
}
