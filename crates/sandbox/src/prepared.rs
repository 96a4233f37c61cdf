//! A sandbox in the form in which a process gets it.

use std::os::fd::OwnedFd;

use brigade_sys::confine::{Confinement, Restrictions};

use crate::limits::Limits;
use crate::report::SandboxReport;

/// A sandbox that was made once, for any number of processes.
#[derive(Debug, Default)]
pub struct Prepared {
    /// The sandbox of a process, without limits.
    pub confinement: Confinement,
    /// The rules of Landlock.
    pub files: Option<OwnedFd>,
    /// The process gets no variables of its host's environment.
    pub clears_environment: bool,
    /// The layers, and which of them hold.
    pub report: SandboxReport,
}

impl Prepared {
    /// Returns the sandbox of a process that sets these limits.
    pub fn with_limits(&self, limits: &Limits) -> Confinement {
        let limits = limits.of_process().into_iter();
        let limits = limits.map(|(_, limited, limit)| (limited, limit)).collect();
        Confinement { limits, ..self.confinement.clone() }
    }

    /// Returns what a program gives up before it is executed.
    pub fn into_restrictions(self) -> Restrictions {
        self.confinement.restrictions(self.files)
    }
}
