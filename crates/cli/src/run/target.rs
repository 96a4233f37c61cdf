//! The target of a run: this machine or a cluster.

use std::time::Duration;

use brigade::runner::{Client, Resume, Runner, Summary};
use miette::Report;

use super::{explain, prepare};
use crate::arguments::Run;
use crate::remote::RemoteRun;

/// The place where the jobs of a run are executed.
pub(super) struct Target {
    /// `None` for this machine.
    remote: Option<RemoteRun>,
}

impl Target {
    /// Returns the target that the options choose.
    pub(super) fn of(options: &Run) -> Result<Self, Report> {
        Ok(Self { remote: RemoteRun::of(options)? })
    }

    pub(super) fn runner(&self, options: &Run, tick: Option<Duration>) -> Result<Runner, Report> {
        if self.remote.is_some() {
            return prepare::remote_runner(options, tick);
        }
        prepare::runner(options, tick)
    }

    /// Connects to the cluster, if there is one, before anything is written. Returns the name of
    /// the batch for a new log.
    pub(super) fn connect(&mut self) -> Result<Option<String>, Report> {
        if let Some(remote) = &mut self.remote {
            remote.connect()?;
            return Ok(Some(remote.batch.clone()));
        }
        Ok(None)
    }

    /// Continues the run of a log.
    pub(super) fn resume(&mut self, resume: &Resume, options: &Run) {
        if let Some(remote) = &mut self.remote {
            remote.resume(resume, options.joblog.as_deref());
        }
    }

    /// Runs the jobs.
    pub(super) fn run(self, runner: Runner, client: &mut dyn Client) -> Result<Summary, Report> {
        if let Some(remote) = self.remote {
            return remote.run(runner, client);
        }
        runner.run_client(client).map_err(explain::run_error)
    }
}
