//! The thread for slow work that is not user code.
//!
//! It finds the processes that a worker has started before it kills the worker, and it returns
//! large memory to the system, so that deadlines do not have to wait for either. A worker is
//! stopped before it is handed to this thread, so its task no longer runs. The jobs are bounded: a
//! kill examines at most a few thousand processes.

use std::sync::Arc;

use brigade_supervisor::{Killed, WorkerProcess};
use brigade_sys::catch_panic::catch_panic;
use brigade_sys::process::Swept;
use crossbeam_channel::Receiver;
use tracing::{Level, debug, warn};

use super::jobs::Job;
use super::shared::Shared;

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
    pub(super) fn kill_worker(&self, process: &Arc<WorkerProcess>, at_once: bool) {
        match process.kill() {
            Ok(Killed::NotYet) => {}
            Ok(Killed::Sent) => self.after_kill(process, at_once),
            Ok(Killed::Stopped) => {
                let job = Job::Kill { process: Arc::clone(process), at_once };
                if let Some(job) = self.cleaner.push(job) {
                    self.do_job(job);
                }
            }
            Err(error) => self.could_not_kill(process, error),
        }
    }

    fn do_job(&self, job: Job) {
        match job {
            Job::Free { to_free } => drop(to_free),
            Job::Kill { process, at_once } => match process.kill_tree() {
                Ok(swept) => {
                    self.after_kill(&process, at_once);
                    self.note_swept(&process, swept);
                }
                Err(error) => self.could_not_kill(&process, error),
            },
        }
    }

    fn after_kill(&self, process: &WorkerProcess, at_once: bool) {
        if at_once {
            process.allow_early_report();
            self.supervisor.reaper.wake();
        }
    }

    fn note_swept(&self, process: &WorkerProcess, swept: Swept) {
        let (worker, pid) = (process.worker(), process.pid());
        let Swept { killed, escaped, unseen, .. } = swept;
        if !killed.is_empty() {
            self.supervisor.output.note(Level::DEBUG, move |pool| {
                debug!(pool, %worker, pid, ?killed, "killed the processes that a worker had started");
            });
        }
        if !escaped.is_empty() || !unseen.is_empty() {
            self.supervisor.output.note(Level::WARN, move |pool| {
                warn!(pool, %worker, pid, ?escaped, ?unseen, "failed to kill processes that a worker had started");
            });
        }
    }
}
