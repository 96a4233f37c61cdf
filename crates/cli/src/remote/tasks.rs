//! The jobs of a run as tasks of a batch.
//!
//! An item is named after its job and what the job does, and by the number of its attempt. So a
//! client that runs again collects the outcomes of attempts that are recorded, and a job that has
//! failed according to the log gets new attempts.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::Arc;

use brigade::cluster::{Batch, ClusterError, ClusterHandle, Requirements};
use brigade::pool::{TaskError, TaskErrorKind};
use brigade::runner::{Ending, Job, News, Remote, RemoteAttempt, RemoteReport, Stopper};
use crossbeam_channel::{Receiver, Sender, unbounded};
use parking_lot::Mutex;

use super::command::{COMMAND, LABEL, RemoteCommand};

/// The settings of all jobs.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) cores_per_job: Option<u32>,
    /// Amounts for jobs that do not say what they need.
    pub(super) needs: Vec<(String, u64)>,
    pub(super) labels: Vec<String>,
    pub(super) nice: i32,
    /// `true` if the directories of jobs are created.
    pub(super) creates_folders: bool,
    /// The number of failures of jobs in the log.
    pub(super) failures: BTreeMap<u64, u32>,
}

/// The jobs of a run as tasks of a batch.
pub(super) struct RemoteTasks<'cluster> {
    batch: Batch<'cluster>,
    settings: Settings,
    submitted: HashMap<u64, Submitted>,
    inbox: Arc<ReportInbox>,
    arrived: Receiver<ArrivedReport>,
}

/// An attempt that was submitted.
struct Submitted {
    handle: ClusterHandle<RemoteReport>,
    item: String,
    command: RemoteCommand,
    needs: Requirements,
    is_ended: bool,
    /// Number of times that another run has cancelled the attempt.
    cancellations: u32,
}

/// Reports of the cluster that the runner has not taken.
struct ReportInbox {
    /// By the names of attempts.
    tickets: Mutex<HashMap<String, u64>>,
    sender: Sender<ArrivedReport>,
    stopper: Stopper,
}

enum ArrivedReport {
    Start { ticket: u64, host: Arc<str> },
    Outcome { ticket: u64, outcome: Box<Result<RemoteReport, TaskError>> },
}

impl<'cluster> RemoteTasks<'cluster> {
    pub(super) fn new(
        batch: Batch<'cluster>,
        settings: Settings,
        stopper: Stopper,
    ) -> Result<Self, ClusterError> {
        let (sender, arrived) = unbounded();
        let inbox = Arc::new(ReportInbox { tickets: Mutex::default(), sender, stopper });
        let theirs = Arc::clone(&inbox);
        batch.on_start(move |item, host| theirs.started(item, host))?;
        Ok(Self { batch, settings, submitted: HashMap::new(), inbox, arrived })
    }

    fn start(
        &self,
        ticket: u64,
        item: &str,
        command: &RemoteCommand,
        needs: &Requirements,
    ) -> Result<ClusterHandle<RemoteReport>, String> {
        self.inbox.tickets.lock().insert(item.to_owned(), ticket);
        let task = self.batch.task(item, &COMMAND).map_err(|error| error.to_string())?;
        // The item's name has the hash of all that counts.
        let task = task.requires(needs.clone()).announce_start().accept_any_input();
        let submitted = task.submit(command.clone());
        let handle = submitted.map_err(|error| error.to_string())?;
        let inbox = Arc::clone(&self.inbox);
        handle.on_done(move |outcome| {
            inbox.push(ArrivedReport::Outcome { ticket, outcome: Box::new(outcome) });
        });
        Ok(handle)
    }

    fn requirements(&self, job: &Job) -> Requirements {
        let cores = job.cores.map(|cores| u32::try_from(cores).unwrap_or(u32::MAX));
        let needs = cores
            .or(self.settings.cores_per_job)
            .map_or_else(Requirements::new, Requirements::cores);
        let needs = self.settings.labels.iter().fold(needs.label(LABEL), Requirements::label);
        let named = if job.needs.is_empty() { &self.settings.needs } else { &job.needs };
        named.iter().fold(needs, |needs, (name, amount)| needs.resource(name, *amount))
    }

    /// Submits an attempt again that another run has cancelled. Returns its end if it cannot be.
    fn resume(&mut self, ticket: u64) -> Option<News> {
        let submitted = self.submitted.get(&ticket)?;
        let cancellations = submitted.cancellations + 1;
        let item = format!("{}-{cancellations}", submitted.item);
        let started = self.start(ticket, &item, &submitted.command, &submitted.needs);
        match started {
            Ok(handle) => {
                let submitted = self.submitted.get_mut(&ticket)?;
                (submitted.handle, submitted.cancellations) = (handle, cancellations);
                None
            }
            Err(reason) => Some(self.over(ticket, RemoteReport::new(Ending::Lost(reason)))),
        }
    }

    fn over(&mut self, ticket: u64, report: RemoteReport) -> News {
        self.forget(ticket);
        News::Ended { ticket, report: Box::new(report) }
    }

    fn forget(&mut self, ticket: u64) {
        if self.submitted.remove(&ticket).is_some() {
            self.inbox.tickets.lock().retain(|_, other| *other != ticket);
        }
    }

    fn handle(&mut self, ticket: u64, outcome: Result<RemoteReport, TaskError>) -> Option<News> {
        let error = match outcome {
            Ok(report) => return Some(self.over(ticket, report)),
            Err(error) => error,
        };
        match error.kind() {
            TaskErrorKind::Killed | TaskErrorKind::Cancelled => {
                if !self.submitted.get(&ticket)?.is_ended {
                    return self.resume(ticket);
                }
                self.forget(ticket);
                Some(News::Withdrawn { ticket })
            }
            _ => Some(self.over(ticket, RemoteReport::new(Ending::Lost(error.to_string())))),
        }
    }
}

impl Remote for RemoteTasks<'_> {
    fn submit(&mut self, attempt: RemoteAttempt<'_>) -> Result<(), String> {
        let RemoteAttempt { ticket, number, attempt: nth, job, limit, .. } = attempt;
        let mut command = RemoteCommand::of(number, job, &self.settings)?;
        command.limit = limit;
        let failures = self.settings.failures.get(&number).copied().unwrap_or_default();
        let item = item(number, &command, failures, nth);
        let needs = self.requirements(job);
        let handle = self.start(ticket, &item, &command, &needs)?;
        let (is_ended, cancellations) = (false, 0);
        let submitted = Submitted { handle, item, command, needs, is_ended, cancellations };
        self.submitted.insert(ticket, submitted);
        Ok(())
    }

    fn end(&mut self, ticket: u64) {
        if let Some(submitted) = self.submitted.get_mut(&ticket) {
            submitted.is_ended = true;
            submitted.handle.request_kill();
        }
    }

    fn news(&mut self) -> Option<News> {
        loop {
            let arrived = self.arrived.try_recv().ok()?;
            let news = match arrived {
                ArrivedReport::Start { ticket, host } => Some(News::Began { ticket, host }),
                ArrivedReport::Outcome { ticket, outcome } => self.handle(ticket, *outcome),
            };
            if news.is_some() {
                return news;
            }
        }
    }
}

impl ReportInbox {
    fn started(&self, item: &str, host: &str) {
        let ticket = self.tickets.lock().get(item).copied();
        if let Some(ticket) = ticket {
            self.push(ArrivedReport::Start { ticket, host: host.into() });
        }
    }

    fn push(&self, arrived: ArrivedReport) {
        // Nobody receives it if the run is over.
        let _ = self.sender.send(arrived);
        self.stopper.wake();
    }
}

/// Returns the name of an attempt in its batch.
fn item(number: u64, command: &RemoteCommand, failures: u32, attempt: u32) -> String {
    let mut item = format!("{number}-{:016x}-{attempt}", command.stable_hash());
    if failures > 0 {
        // Writing to a string cannot fail.
        let _ = write!(item, "-f{failures}");
    }
    item
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn items_differ_by_what_runs_and_by_attempt() {
        let item = |line: &str, failures, attempt| {
            let command = RemoteCommand::of(7, &Job::shell(line), &Settings::default()).unwrap();
            item(7, &command, failures, attempt)
        };
        let names =
            [item("a", 0, 1), item("b", 0, 1), item("a", 1, 1), item("a", 0, 2), item("a", 9, 9)];
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{names:?}");
        }
        assert_eq!(item("a", 0, 1), names[0]);
    }

    /// A batch goes on after an update of the command.
    #[test]
    fn an_item_has_the_same_name_in_every_release() {
        let job = Job::shell("sort <a >b").env("LANG", "C").folder("/tmp").plain();
        let command = RemoteCommand::of(7, &job, &Settings::default()).unwrap();
        assert_eq!(item(7, &command, 0, 1), "7-e74e205ee740a06d-1");
        let settings = Settings { nice: 9, creates_folders: true, ..Settings::default() };
        let mut limited = RemoteCommand::of(7, &job, &settings).unwrap();
        limited.limit = Some(Duration::from_secs(1));
        assert_eq!(item(7, &limited, 2, 1), "7-e74e205ee740a06d-1-f2");
    }

    #[test]
    fn input_is_refused() {
        let job = Job::shell("cat").stdin(brigade::runner::Stdin::Bytes(b"x".to_vec()));
        let refused = RemoteCommand::of(1, &job, &Settings::default()).unwrap_err();
        assert!(refused.contains("standard input"), "{refused}");
    }

    #[test]
    fn a_confinement_is_refused() {
        let confinement = brigade::runner::Confinement::new(brigade::Limits::new()).expect("none");
        let job = Job::shell("true").confinement(Arc::new(confinement));
        let refused = RemoteCommand::of(1, &job, &Settings::default()).unwrap_err();
        assert!(refused.contains("`brigade node`"), "{refused}");
    }
}
