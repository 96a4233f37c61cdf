//! A sandbox in the form in which a process gets it.

use std::os::fd::OwnedFd;

use brigade_sys::confine::{Confinement, Restrictions};

use crate::error::SandboxError;
use crate::limits::Limits;
use crate::report::SandboxReport;
use crate::rules::Rules;

/// A sandbox that was made once, for any number of processes.
#[derive(Debug, Default)]
pub struct Prepared {
    /// The sandbox of a process, without limits.
    pub confinement: Confinement,
    /// The rules of Landlock.
    pub rules: Rules,
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

    /// Makes the set of rules that a process gets; `None` if it gets none.
    ///
    /// # Errors
    /// [`SandboxError::Make`].
    pub fn files(&self) -> Result<Option<OwnedFd>, SandboxError> {
        let files = if self.confinement.files { self.rules.make() } else { Ok(None) };
        files.map_err(SandboxError::make("rules for files"))
    }

    /// Returns what a program gives up before it is executed.
    ///
    /// # Errors
    /// [`SandboxError::Make`].
    pub fn into_restrictions(self) -> Result<Restrictions, SandboxError> {
        let files = self.files()?;
        Ok(self.confinement.restrictions(files))
    }
}
