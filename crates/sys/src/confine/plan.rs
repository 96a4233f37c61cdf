//! A sandbox as plain data, which a host sends to its workers.

use std::ffi::CString;
use std::os::fd::OwnedFd;

use super::namespaces::View;
use super::{Restrictions, instruction};
use crate::resource_limit::Limited;

/// A sandbox, in the form in which a worker hands it to the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Confinement {
    /// The namespaces that the process makes for itself.
    pub isolation: Option<Isolation>,
    /// `true` if there are rules for files. Their descriptor comes along.
    pub files: bool,
    /// Entries of the process itself in `/proc`, and the rights on them that the rules allow, too.
    pub own: Vec<(CString, u64)>,
    /// The process gives up its capabilities, except for those with which root reads files and, if
    /// it is `true`, writes them.
    pub capabilities: Option<bool>,
    /// Limits that the process sets.
    pub limits: Vec<(Limited, u64)>,
    /// The highest limits that the process could set become those that it has.
    pub lowers_limits: bool,
    /// Filters of system calls, as the words of their instructions.
    pub filters: Vec<Vec<u64>>,
    /// A worker enters it before its initializer, and not after it.
    pub before_initializer: bool,
}

/// Namespaces that a process makes for itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Isolation {
    /// No network but a loopback interface that is down.
    pub network: bool,
    /// The files that stay visible; `None` for all.
    pub files: Option<Vec<Visible>>,
}

/// A file, or a folder with all that is below it, that stays visible.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Visible {
    /// Its path without links. It is absolute.
    pub path: CString,
    /// The links over which it was named: where each lies, and where it leads.
    pub links: Vec<(CString, CString)>,
    /// It is a folder.
    pub is_folder: bool,
    /// It may be changed.
    pub is_writable: bool,
}

impl Confinement {
    /// Returns what a process gives up that has got these rules for files.
    pub fn restrictions(self, files: Option<OwnedFd>) -> Restrictions {
        let visible = self.isolation.as_ref().and_then(|it| it.files.clone());
        let filter = |words: &Vec<u64>| words.iter().copied().map(instruction).collect();
        let filters = self.filters.iter().map(filter).collect();
        Restrictions { files, view: visible.map(View::new), filters, plan: self }
    }
}
