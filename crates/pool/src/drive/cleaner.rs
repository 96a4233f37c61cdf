//! The thread for slow work that is not user code.
//!
//! It finds the processes that a worker has started before it kills the worker, and it returns
//! large memory to the system, so that deadlines do not have to wait for either. A worker is
//! stopped before it is handed to this thread, so its task no longer runs. The jobs are bounded: a
//! kill examines at most a few thousand processes.

use std::sync::Arc;

use brigade_sys::catch_panic::catch_panic;
use brigade_sys::process::{Process, Swept};
use brigade_sys::sync::Mutex;
use brigade_wire::WorkerId;
use crossbeam_channel::{Receiver, Sender, unbounded};
use tracing::{Level, debug, warn};

use super::deferred::ToFree;
use super::shared::Shared;
use super::worker_slot::{Killed, ProcessState};

/// The job queue of the cleaner thread; `None` once the pool has ended.
pub(super) struct Cleaner(Mutex<Option<Sender<Job>>>);

pub(super) enum Job {
    Kill { worker: WorkerId, state: Arc<ProcessState>, process: Arc<Process>, at_once: bool },
    Free { to_free: Vec<ToFree> },
}

impl Cleaner {
    pub(super) fn new() -> (Self, Receiver<Job>) {
        let (sender, receiver) = unbounded();
        (Self(Mutex::new(Some(sender))), receiver)
    }

    pub(super) fn free(&self, to_free: Vec<ToFree>) {
        // If the thread has ended, so have all threads that could wait for this one, and it may
        // free the memory itself.
        drop(self.push(Job::Free { to_free }));
    }

    /// Returns the job if the thread has ended.
    fn push(&self, job: Job) -> Option<Job> {
        match &*self.0.lock() {
            Some(jobs) => jobs.send(job).err().map(|refused| refused.0),
            None => Some(job),
        }
    }

    pub(super) fn end(&self) {
        self.0.lock().take();
    }
}

/// Runs jobs until the pool ends.
pub(super) fn run(shared: &Shared, jobs: &Receiver<Job>) {
    while let Ok(job) = jobs.recv() {
        // Nothing in a job is known to panic. If it does, the panic hook has reported it, and the
        // next job is not affected.
        let _ = catch_panic(|| shared.do_job(job));
    }
}

impl Shared {
    /// Kills a worker. With `at_once`, its death may be reported immediately, while the system is
    /// still cleaning up the process.
    pub(super) fn kill_worker(&self, worker: WorkerId, state: &Arc<ProcessState>, at_once: bool) {
        match state.kill() {
            Ok(Killed::NotYet) => {}
            Ok(Killed::Sent) => self.after_kill(state, at_once),
            Ok(Killed::Stopped(process)) => {
                let job = Job::Kill { worker, state: Arc::clone(state), process, at_once };
                if let Some(job) = self.cleaner.push(job) {
                    self.do_job(job);
                }
            }
            Err(error) => self.could_not_kill(worker, state, error),
        }
    }

    fn do_job(&self, job: Job) {
        match job {
            Job::Free { to_free } => drop(to_free),
            Job::Kill { worker, state, process, at_once } => match process.kill_tree() {
                Ok(swept) => {
                    self.after_kill(&state, at_once);
                    self.note_swept(worker, process.pid(), swept);
                }
                Err(error) => self.could_not_kill(worker, &state, error),
            },
        }
    }

    fn after_kill(&self, state: &ProcessState, at_once: bool) {
        if at_once {
            state.allow_early_report();
            self.reaper.wake();
        }
    }

    fn note_swept(&self, worker: WorkerId, pid: u32, swept: Swept) {
        let Swept { killed, escaped, unseen, .. } = swept;
        if !killed.is_empty() {
            self.output.note(Level::DEBUG, move |pool| {
                debug!(pool, %worker, pid, ?killed, "killed the processes that a worker had started");
            });
        }
        if !escaped.is_empty() || !unseen.is_empty() {
            self.output.note(Level::WARN, move |pool| {
                warn!(pool, %worker, pid, ?escaped, ?unseen, "failed to kill processes that a worker had started");
            });
        }
    }
}
