//! Makes the confinement of jobs, and `brigade sandbox`, which shows what this machine can do.

use std::io::{self, Write};
use std::sync::Arc;

use brigade::SandboxReport;
use brigade::runner::Confinement;
use clap::ValueEnum;
use miette::{IntoDiagnostic, Report};
use serde::Deserialize;

use crate::arguments::{LimitOptions, SandboxOptions};

/// The level of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SandboxLevel {
    /// No connections to other machines
    NoNetwork,
    /// Neither connections nor changes of files and of the system
    ReadOnly,
    /// Nothing but the programs of the system, and what other options allow
    Strict,
}

/// The options of a command that confine its jobs. Job files have them as fields.
pub(crate) type Confining = (SandboxOptions, LimitOptions);

/// Returns the confinement of jobs; `None` if nothing is asked for. The error is for people.
pub(crate) fn confinement(
    sandbox: &SandboxOptions,
    limits: LimitOptions,
) -> Result<Option<Arc<Confinement>>, String> {
    let has_rights = *sandbox != SandboxOptions::default();
    if !has_rights && limits == LimitOptions::default() {
        return Ok(None);
    }
    let sandbox = sandbox.made();
    if sandbox.is_none() && has_rights {
        return Err("paths and ports are exceptions from a sandbox: choose its level, as in \
                    `--sandbox strict`, or `sandbox = \"strict\"` in a job file"
            .to_owned());
    }
    let made = Confinement::new(limits.made());
    let made = made.and_then(|made| match sandbox {
        Some(sandbox) => made.sandbox(sandbox),
        None => Ok(made),
    });
    made.map(|made| Some(Arc::new(made))).map_err(|error| error.to_string())
}

/// Shows what this machine can do.
pub(crate) fn show() -> Result<(), Report> {
    let report = SandboxReport::of_this_machine();
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{report}").into_diagnostic()
}
