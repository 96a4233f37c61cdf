//! The thread for what takes a while and is nobody's code: it looks for what a worker has started before it kills it, and gives
//! large memory back to the system. Deadlines of others do not wait for that.
//!
//! A worker that is left to it is stopped already, so that its task is over. The jobs are bounded: a kill looks at no more than
//! some thousand processes.

use std::sync::{Arc, Mutex, PoisonError};

use brigade_sys::process::{Process, Swept};
use brigade_wire::WorkerId;
use crossbeam_channel::{Receiver, Sender, unbounded};
use tracing::{Level, debug, warn};

use super::afterwards::Remains;
use super::post::{Killed, Life};
use super::shared::Shared;
use crate::contained::contain;

/// See the module's documentation.
pub(super) struct Cleaner(Mutex<Option<Sender<Job>>>);

pub(super) enum Job {
    Kill { worker: WorkerId, life: Arc<Life>, process: Arc<Process>, at_once: bool },
    Free { remains: Vec<Remains> },
}

impl Cleaner {
    pub(super) fn new() -> (Self, Receiver<Job>) {
        let (sender, receiver) = unbounded();
        (Self(Mutex::new(Some(sender))), receiver)
    }

    pub(super) fn free(&self, remains: Vec<Remains>) {
        // When the thread is gone, so are all that could wait for this one.
        drop(self.give(Job::Free { remains }));
    }

    /// Gives the job back when the thread has ended.
    fn give(&self, job: Job) -> Option<Job> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(jobs) => jobs.send(job).err().map(|refused| refused.0),
            None => Some(job),
        }
    }

    pub(super) fn end(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Does jobs until there can be no more.
pub(super) fn run(shared: &Shared, jobs: &Receiver<Job>) {
    while let Ok(job) = jobs.recv() {
        // Nothing in there is known to panic; if it does, the panic hook has said so, and the next job is not worse off.
        let _ = contain(|| shared.do_job(job));
    }
}

impl Shared {
    /// Kills a worker; `at_once`: its death may be reported now, although the system is still clearing it up.
    pub(super) fn kill_worker(&self, worker: WorkerId, life: &Arc<Life>, at_once: bool) {
        match life.kill() {
            Ok(Killed::NotYet) => {}
            Ok(Killed::Sent) => self.killed(life, at_once),
            Ok(Killed::Stopped(process)) => {
                let job = Job::Kill { worker, life: Arc::clone(life), process, at_once };
                if let Some(job) = self.cleaner.give(job) {
                    self.do_job(job);
                }
            }
            Err(error) => self.could_not_kill(worker, life, error),
        }
    }

    fn do_job(&self, job: Job) {
        match job {
            Job::Free { remains } => drop(remains),
            Job::Kill { worker, life, process, at_once } => match process.kill_tree() {
                Ok(swept) => {
                    self.killed(&life, at_once);
                    self.note_swept(worker, process.pid(), swept);
                }
                Err(error) => self.could_not_kill(worker, &life, error),
            },
        }
    }

    fn killed(&self, life: &Life, at_once: bool) {
        if at_once {
            life.need_not_be_waited_for();
            self.reaper.wake();
        }
    }

    fn note_swept(&self, worker: WorkerId, pid: u32, swept: Swept) {
        let Swept { killed, escaped, unseen, .. } = swept;
        if !killed.is_empty() {
            self.console.note(Level::DEBUG, move |pool| {
                debug!(pool, %worker, pid, ?killed, "processes that a worker had started were killed with it");
            });
        }
        if !escaped.is_empty() || !unseen.is_empty() {
            self.console.note(Level::WARN, move |pool| {
                warn!(pool, %worker, pid, ?escaped, ?unseen, "processes that a worker had started could not be killed");
            });
        }
    }
}
