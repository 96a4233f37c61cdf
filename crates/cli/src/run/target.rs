//! The target of a run: this machine or a cluster.

use std::time::Duration;

use brigade::runner::{Client, Resume, Runner, Summary};
use miette::Report;

use super::{explain, prepare};
use crate::arguments::Run;
#[cfg(feature = "cluster")]
use crate::remote::RemoteRun;

/// The place where the jobs of a run are executed.
pub(super) struct Target {
    /// `None` for this machine.
    #[cfg(feature = "cluster")]
    remote: Option<RemoteRun>,
}

impl Target {
    /// Returns the target that the options choose.
    #[cfg_attr(not(feature = "cluster"), expect(clippy::unnecessary_wraps, reason = "see above"))]
    pub(super) fn of(options: &Run) -> Result<Self, Report> {
        #[cfg(not(feature = "cluster"))]
        let _ = options;
        Ok(Self {
            #[cfg(feature = "cluster")]
            remote: RemoteRun::of(options)?,
        })
    }

    pub(super) fn runner(&self, options: &Run, tick: Option<Duration>) -> Result<Runner, Report> {
        #[cfg(feature = "cluster")]
        if self.remote.is_some() {
            return prepare::remote_runner(options, tick);
        }
        prepare::runner(options, tick)
    }

    /// Connects to the cluster, if there is one, before anything is written. Returns the name of
    /// the batch for a new log.
    #[cfg_attr(not(feature = "cluster"), expect(clippy::unnecessary_wraps, reason = "see above"))]
    pub(super) fn connect(&mut self) -> Result<Option<String>, Report> {
        #[cfg(feature = "cluster")]
        if let Some(remote) = &mut self.remote {
            remote.connect()?;
            return Ok(Some(remote.batch.clone()));
        }
        Ok(None)
    }

    /// Continues the run of a log.
    pub(super) fn resume(&mut self, resume: &Resume, options: &Run) {
        #[cfg(feature = "cluster")]
        if let Some(remote) = &mut self.remote {
            remote.resume(resume, options.joblog.as_deref());
        }
        #[cfg(not(feature = "cluster"))]
        let _ = (resume, options);
    }

    /// Runs the jobs.
    pub(super) fn run(self, runner: Runner, client: &mut dyn Client) -> Result<Summary, Report> {
        #[cfg(feature = "cluster")]
        if let Some(remote) = self.remote {
            return remote.run(runner, client);
        }
        runner.run_client(client).map_err(explain::run_error)
    }
}
