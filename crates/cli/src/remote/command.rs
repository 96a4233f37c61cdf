//! The function that nodes run for `brigade run --cluster`: a job in a worker process.
//!
//! The job runs in a runner of its own. So its process group, and whatever has left the group, is
//! gone when the job is over, when the worker is killed, and when the node is.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, UNIX_EPOCH};
use std::{fs, io};

use brigade::runner::{
    self, Builder, Command, Confinement, Ending, Job, Limit, Output, RemoteReport, Runner,
    StartFailure,
};
use brigade::{Key, worker};
use brigade_base::stable_hash;
use serde::{Deserialize, Serialize};

use super::tasks::Settings;
use crate::arguments::{LimitOptions, SandboxOptions};
use crate::confine;
use crate::each::Each;

/// The function. Its version changes with the types.
pub(crate) static COMMAND: Key<RemoteCommand, RemoteReport> =
    Key::new("brigade/command/1", |command: RemoteCommand| command.run());

/// The label of nodes that run commands, which is reserved for them.
pub(crate) const LABEL: &str = "commands";

/// The name of the host in reports.
static HOST: OnceLock<String> = OnceLock::new();

/// The confinement of all jobs of this worker, or the reason why it is not possible.
static CONFINEMENT: OnceLock<Result<Option<Arc<Confinement>>, String>> = OnceLock::new();

/// The variables for a slot and its cores, which the runner of a single job does not know.
const SLOT: &str = "PARALLEL_JOBSLOT";
const CORES: &str = "BRIGADE_CORES";

/// A job, as a node needs it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RemoteCommand {
    number: u64,
    words: Vec<Vec<u8>>,
    environment: Vec<(Vec<u8>, Vec<u8>)>,
    folder: Option<Vec<u8>>,
    creates_folder: bool,
    slot_marker: Option<Vec<u8>>,
    pub(super) limit: Option<Duration>,
    nice: i32,
}

/// Serves commands in a worker process of a node with this name. Returns if this process is none.
pub(crate) fn serve(host: String, sandbox: &SandboxOptions, limits: LimitOptions) {
    HOST.get_or_init(|| host);
    CONFINEMENT.get_or_init(|| confine::confinement(sandbox, limits));
    worker::Server::new().register(&COMMAND).run();
}

impl RemoteCommand {
    /// Returns a hash of what the command does, which names its items on the server. Limits and the
    /// like do not count. A field that is added later must not count where it has its default, so
    /// that a batch goes on after an update.
    pub(crate) fn stable_hash(&self) -> u64 {
        let environment = self.environment.iter().flat_map(|(name, value)| [name, value]);
        let lists = [self.words.iter().collect(), environment.collect::<Vec<_>>()];
        let places = [self.folder.iter().collect(), self.slot_marker.iter().collect()];
        let mut bytes = Vec::new();
        for list in lists.into_iter().chain(places) {
            bytes.extend((list.len() as u64).to_le_bytes());
            for text in list {
                bytes.extend((text.len() as u64).to_le_bytes());
                bytes.extend(text);
            }
        }
        stable_hash(bytes)
    }

    /// Returns a job as nodes need it, without a time limit.
    pub(super) fn of(number: u64, job: &Job, settings: &Settings) -> Result<Self, String> {
        if job.stdin != runner::Stdin::Null {
            return Err(
                "it has standard input, which is not sent to nodes; let it read a file there"
                    .to_owned(),
            );
        }
        if job.confinement.is_some() {
            return Err("it has a sandbox or limits, and nodes confine all jobs in one way: give \
                        them to `brigade node`"
                .to_owned());
        }
        let plain = job.plain();
        let Command::Argv(words) = plain.command() else {
            return Err("its command has no words".to_owned());
        };
        let bytes = |text: &OsStr| text.as_bytes().to_vec();
        let environment = job.environment.iter();
        Ok(Self {
            number,
            words: words.iter().map(|word| bytes(word)).collect(),
            environment: environment.map(|(name, value)| (bytes(name), bytes(value))).collect(),
            folder: job.folder.as_ref().map(|folder| bytes(folder.as_os_str())),
            creates_folder: settings.creates_folders,
            slot_marker: job.slot_marker.as_deref().map(bytes),
            limit: None,
            nice: settings.nice,
        })
    }

    fn run(self) -> RemoteReport {
        let report = self.report().unwrap_or_else(|message| {
            RemoteReport::new(Ending::NotStarted(StartFailure::other(message)))
        });
        let host = HOST.get().cloned().unwrap_or_default();
        let cores = worker::cores().unwrap_or_default().to_vec();
        RemoteReport { host, slot: own_slot(), cores, ..report }
    }

    fn report(self) -> Result<RemoteReport, String> {
        let (limit, nice) = (self.limit, self.nice);
        let job = self.job(worker::cores().unwrap_or_default())?;
        let confinement = CONFINEMENT.get().cloned().transpose()?.flatten();
        let builder = Runner::builder()
            .unpinned()
            .jobs(1)
            .output(Output::Whole)
            .nice(nice)
            .each(limit.map(Limit::Fixed), Builder::limit)
            .each(confinement, Builder::confinement);
        let runner = builder.adopt_orphans().build().map_err(|error| error.to_string())?;
        let outcome = runner.run_all([job]).map_err(|error| error.to_string())?.pop();
        let outcome = outcome.ok_or("the job has no outcome")?;
        let read = |stream: io::Result<Vec<u8>>| stream.map_err(|error| error.to_string());
        Ok(RemoteReport {
            started_at: outcome.started_at.duration_since(UNIX_EPOCH).unwrap_or_default(),
            wall: outcome.wall,
            user: outcome.user,
            system: outcome.system,
            peak_memory: outcome.peak_memory,
            stdout: read(outcome.stdout())?,
            stderr: read(outcome.stderr())?,
            ..RemoteReport::new(outcome.ending)
        })
    }

    /// Returns the job as the runner of this worker needs it.
    fn job(self, cores: &[u32]) -> Result<Job, String> {
        let slot = own_slot().to_string();
        let mut words = self.words.into_iter().map(OsString::from_vec);
        let program = words.next().ok_or("the command has no words")?;
        let marker = self.slot_marker.map(OsString::from_vec);
        let job = Job::new(program).args(words).each(marker, Job::slot_marker).on_slot(&slot);
        let cores: Vec<String> = cores.iter().map(u32::to_string).collect();
        let folder = self.folder.map(|folder| PathBuf::from(OsString::from_vec(folder)));
        if let Some(folder) = folder.as_ref().filter(|_| self.creates_folder) {
            fs::create_dir_all(folder).map_err(|error| {
                format!("cannot create the directory {}: {error}", folder.display())
            })?;
        }
        let job = job
            .number(self.number)
            .env(SLOT, slot)
            .env(CORES, cores.join(","))
            .each(worker::resource_variables(), |job, (name, value)| job.env(name, value))
            .each(self.environment, |job, (name, value)| {
                job.env(OsString::from_vec(name), OsString::from_vec(value))
            })
            .each(folder, Job::folder);
        Ok(job)
    }
}

/// Returns the number of this worker's slot, from 1 as in a run on one machine.
fn own_slot() -> u32 {
    worker::slot().unwrap_or_default() + 1
}
