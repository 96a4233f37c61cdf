//! Makes sandboxes and limits of options and of fields in job files, and `brigade sandbox`, which
//! shows what this machine can do.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use brigade::runner::Confinement;
use brigade::{Limits, Sandbox, SandboxReport};
use clap::ValueEnum;
use miette::{IntoDiagnostic, Report};
use serde::Deserialize;

use crate::each::Each;

/// The level of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Level {
    /// No connections to other machines
    NoNetwork,
    /// Neither connections nor changes of files and of the system
    ReadOnly,
    /// Nothing but the programs of the system, and what other options allow
    Strict,
}

/// The rights that are given back to a sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    pub(crate) level: Option<Level>,
    pub(crate) read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
    pub(crate) execute: Vec<PathBuf>,
    pub(crate) connect: Vec<u16>,
    pub(crate) calls: Vec<String>,
    pub(crate) isolate: bool,
    pub(crate) best_effort: bool,
}

/// The resources that a job may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Resources {
    pub(crate) memory: Option<u64>,
    pub(crate) cpu_time: Option<Duration>,
    pub(crate) file_size: Option<u64>,
    pub(crate) processes: Option<u64>,
}

impl Rights {
    /// Returns the sandbox, if there is one.
    pub(crate) fn sandbox(&self) -> Option<Sandbox> {
        let sandbox = match self.level? {
            Level::NoNetwork => Sandbox::no_network(),
            Level::ReadOnly => Sandbox::read_only(),
            Level::Strict => Sandbox::strict(),
        };
        let sandbox = sandbox
            .each(&self.read, Sandbox::read)
            .each(&self.write, Sandbox::write)
            .each(&self.execute, Sandbox::execute)
            .each(self.connect.iter().copied(), Sandbox::connect)
            .each(&self.calls, Sandbox::allow_call);
        let sandbox = if self.isolate { sandbox.isolate() } else { sandbox };
        Some(if self.best_effort { sandbox.best_effort() } else { sandbox })
    }
}

impl Resources {
    /// Returns the limits.
    pub(crate) fn limits(self) -> Limits {
        Limits::new()
            .each(self.memory, Limits::memory)
            .each(self.cpu_time, Limits::cpu_time)
            .each(self.file_size, Limits::file_size)
            .each(self.processes, Limits::processes)
    }
}

/// Returns the confinement of jobs; `None` if nothing is asked for. The error is for people.
pub(crate) fn confinement(
    rights: &Rights,
    resources: Resources,
) -> Result<Option<Arc<Confinement>>, String> {
    if *rights == Rights::default() && resources == Resources::default() {
        return Ok(None);
    }
    let sandbox = rights.sandbox();
    if sandbox.is_none() && *rights != Rights::default() {
        return Err("paths and ports are exceptions from a sandbox: choose its level, as in \
                    `--sandbox strict`, or `sandbox = \"strict\"` in a job file"
            .to_owned());
    }
    let made = Confinement::new(resources.limits());
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
