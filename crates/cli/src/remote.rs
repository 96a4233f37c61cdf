//! `brigade run --cluster`: runs jobs on the nodes of a cluster.

mod command;
mod tasks;

pub(crate) use command::{COMMAND, LABEL, serve};

use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;

use brigade::cluster::{Cluster, ClusterBuilder, ClusterStatus, Endpoint};
use brigade::runner::{Client, Limit, Resume, Runner, Summary};
use brigade_base::stable_hash;
use miette::{IntoDiagnostic, Report, WrapErr, miette};

use crate::arguments::{JobCount, Run};
use crate::each::Each;
use tasks::{RemoteTasks, Settings};

/// The number of jobs that are in the queue at once. More would block the run in a submission.
const MAX_JOBS: usize = 1_000;
const QUEUE: &str = "default";

/// A run on a cluster.
pub(crate) struct RemoteRun {
    endpoint: Endpoint,
    queue: String,
    replicas: Option<NonZeroUsize>,
    /// `None` until it is connected.
    cluster: Option<Cluster>,
    /// The name of the batch if it does not continue an earlier one.
    batch: String,
    is_named: bool,
    settings: Settings,
}

impl RemoteRun {
    /// Returns the run that the options ask for, if they name a cluster. Refuses options that make
    /// no sense there.
    pub(crate) fn of(options: &Run) -> Result<Option<Self>, Report> {
        let chosen = &options.on_cluster;
        let Some(url) = &chosen.cluster else {
            return match chosen.login.given() {
                Some(option) => Err(miette!("{option} is a login at a cluster: give --cluster")),
                None => Ok(None),
            };
        };
        if let Some((option, reason)) = refused(options) {
            return Err(miette!("{option} is not available with --cluster: {reason}"));
        }
        let cores_per_job = options.cores_per_job.map(|cores| u32::try_from(cores.get()));
        let unique = getrandom::u64();
        let unique = unique.map_err(|error| miette!("cannot name the batch: {error}"))?;
        let batch = chosen.batch.clone().unwrap_or_else(|| format!("run-{unique:016x}"));
        Ok(Some(Self {
            endpoint: chosen.login.endpoint(Some(url))?,
            replicas: chosen.replicas,
            cluster: None,
            queue: chosen.queue.clone().unwrap_or_else(|| QUEUE.to_owned()),
            batch,
            is_named: chosen.batch.is_some(),
            settings: Settings {
                cores_per_job: cores_per_job.transpose().into_diagnostic()?,
                labels: chosen.labels.clone(),
                needs: options
                    .resources
                    .needs
                    .iter()
                    .map(|(name, it)| (name.clone(), it.total()))
                    .collect(),
                nice: options.nice,
                creates_folders: options.job.wd.is_some(),
                failures: std::collections::BTreeMap::new(),
            },
        }))
    }

    /// Connects to the queue. Returns the name of the batch for a new log.
    pub(crate) fn connect(&mut self) -> Result<String, Report> {
        let cluster = Cluster::builder().endpoint(self.endpoint.clone()).queue(&self.queue);
        let replicas = self.replicas.map(NonZeroUsize::get);
        let connected = cluster.each(replicas, ClusterBuilder::replicas).connect();
        let connected = connected.into_diagnostic();
        self.cluster = Some(connected.wrap_err("cannot use the cluster")?);
        Ok(self.batch.clone())
    }

    /// Takes from the log of an earlier run what belongs to its batch.
    pub(crate) fn resume(&mut self, resume: &Resume, joblog: Option<&Path>) {
        self.settings.failures.clone_from(&resume.failures);
        if self.is_named {
            return;
        }
        match (&resume.batch, joblog) {
            (Some(batch), _) => self.batch.clone_from(batch),
            // Of a run on this machine. Runs that continue it agree on the file.
            (None, Some(joblog)) if resume.is_continued => {
                if let Some(name) = name_of_file(joblog) {
                    self.batch = name;
                }
            }
            _ => {}
        }
    }

    /// Runs the jobs.
    pub(crate) fn run(self, runner: Runner, client: &mut dyn Client) -> Result<Summary, Report> {
        let Self { endpoint, queue, cluster, batch, settings, .. } = self;
        let cluster = cluster.ok_or_else(|| miette!("the cluster is not connected"))?;
        let opened = cluster.batch(&batch).into_diagnostic();
        let batch = opened.wrap_err("cannot use the batch")?;
        let tasks = RemoteTasks::new(batch, settings, runner.stopper()).into_diagnostic();
        let mut tasks = tasks.wrap_err("cannot use the batch")?;
        // Not joined: asking the nodes takes a second.
        drop(
            thread::Builder::new().name("nodes".to_owned()).spawn(move || warn(&endpoint, &queue)),
        );
        runner.run_remote(client, &mut tasks).into_diagnostic()
    }
}

/// Returns the number of jobs that are in the queue at once.
pub(crate) fn jobs(options: &Run) -> usize {
    match options.jobs {
        Some(JobCount::Exactly(jobs)) => jobs.get().min(MAX_JOBS),
        _ => MAX_JOBS,
    }
}

/// Returns an option that is not available on a cluster, and the reason.
fn refused(options: &Run) -> Option<(&'static str, &'static str)> {
    const INPUT: &str =
        "standard input is not sent to nodes; store it in files that the nodes can read";
    const MACHINE: &str = "it concerns this machine, and the jobs run on others";
    const AT_END: &str = "outputs arrive when a job is over";
    const CONFINED: &str = "nodes confine all jobs in one way; start them with it";
    let (pipe, limits) = (&options.pipe, &options.limits);
    let relative =
        matches!(options.jobs, Some(JobCount::More(_) | JobCount::Fewer(_) | JobCount::Percent(_)));
    let options = [
        ("--pipe", pipe.pipe, INPUT),
        ("--pipe-part", pipe.pipe_part, INPUT),
        ("--tee", pipe.tee, INPUT),
        ("--line-buffer", options.line_buffer, AT_END),
        ("--ungroup", options.printed.ungroup, AT_END),
        (
            "--resource",
            !options.resources.resource.is_empty(),
            "nodes declare it; start them with --resource",
        ),
        ("--policy", options.policy.is_some(), "nodes choose the cores; start them with --cores"),
        ("--memfree", options.memfree.is_some(), MACHINE),
        ("--load", options.load.is_some(), MACHINE),
        ("--process-slot-var", options.process_slot_var.is_some(), "use {%}, the slot on its node"),
        ("--delay", options.delay.is_some(), "jobs start when a node has a free worker"),
        ("--sandbox", options.sandbox.sandbox.is_some(), CONFINED),
        ("--memory", limits.memory.is_some(), "start nodes with --task-memory"),
        ("--cpu-time", limits.cpu_time.is_some(), "start nodes with --task-cpu-time"),
        ("--file-size", limits.file_size.is_some(), MACHINE),
        ("--processes", limits.processes.is_some(), MACHINE),
        ("--canary", options.canary.is_some(), "it would try a single node"),
        (
            "--timeout with a percentage",
            matches!(options.timeout, Some(Limit::OfMedian(_))),
            "a limit is fixed when a job is submitted; give a duration",
        ),
        (
            "--jobs relative to the cores",
            relative,
            "it is the number of jobs in the queue at once, up to 1000",
        ),
    ];
    options.into_iter().find(|(_, is_set, _)| *is_set).map(|(option, _, reason)| (option, reason))
}

/// Warns if no node of the queue runs commands.
fn warn(endpoint: &Endpoint, queue: &str) {
    let Ok(status) = ClusterStatus::fetch(endpoint, queue) else { return };
    let is_known = |name: &String| name == COMMAND.name();
    if !status.nodes.iter().any(|node| node.tasks.iter().any(is_known)) {
        tracing::warn!(
            queue,
            "no node that runs commands has answered; the jobs wait for one, started by `brigade \
             node --allow-commands`"
        );
    }
}

/// Returns a name for a batch that is the same as long as the file exists.
fn name_of_file(path: &Path) -> Option<String> {
    let metadata = path.metadata().ok()?;
    let path = path.canonicalize().ok()?.into_os_string().into_vec();
    let numbers = [metadata.dev(), metadata.ino()].map(u64::to_le_bytes);
    Some(format!("log-{:016x}", stable_hash(path.into_iter().chain(numbers.concat()))))
}
