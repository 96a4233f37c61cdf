//! The thread for slow work that is not user code.
//!
//! It finds the processes that a worker has started before it kills the worker, and it returns
//! large memory to the system, so that deadlines do not have to wait for either. A worker is
//! stopped before it is handed to this thread, so its task no longer runs. The jobs are bounded: a
//! kill examines at most a few thousand processes.

use std::sync::Arc;

use brigade_sys::catch_panic::catch_panic;
use brigade_sys::process::Swept;

use crate::note;
use crate::workers::cleaner::{Job, Jobs};
use crate::workers::supervised::Supervised;
use crate::workers::worker_process::{Killed, WorkerProcess};

/// Runs jobs until the pool ends.
pub fn run(owner: &impl Supervised, jobs: &Jobs) {
    while let Ok(job) = jobs.recv() {
        // Nothing in a job is known to panic. If it does, the panic hook has reported it, and the
        // next job is not affected.
        let _ = catch_panic(|| do_job(owner, job));
    }
}

/// Kills a worker. With `at_once`, its death may be reported immediately, while the system is still
/// cleaning up the process.
pub fn kill(owner: &impl Supervised, process: &Arc<WorkerProcess>, at_once: bool) {
    match process.kill() {
        Ok(Killed::NotYet) => {}
        Ok(Killed::Sent) => after_kill(owner, process, at_once),
        Ok(Killed::Stopped) => {
            let job = Job::Kill { process: Arc::clone(process), at_once };
            if let Some(job) = owner.supervisor().cleaner.push(job) {
                do_job(owner, job);
            }
        }
        Err(error) => owner.could_not_kill(process, error),
    }
}

fn do_job(owner: &impl Supervised, job: Job) {
    match job {
        Job::Free(memory) => drop(memory),
        Job::Kill { process, at_once } => match process.kill_tree() {
            Ok(swept) => {
                after_kill(owner, &process, at_once);
                note_swept(owner, &process, swept);
            }
            Err(error) => owner.could_not_kill(&process, error),
        },
    }
}

fn after_kill(owner: &impl Supervised, process: &WorkerProcess, at_once: bool) {
    if at_once {
        process.allow_early_report();
        owner.supervisor().reaper.wake();
    }
}

fn note_swept(owner: &impl Supervised, process: &WorkerProcess, swept: Swept) {
    let output = &owner.supervisor().output;
    let (worker, pid) = (process.worker(), process.pid());
    let Swept { killed, escaped, unseen, .. } = swept;
    if !killed.is_empty() {
        note!(
            output, DEBUG, %worker, pid, ?killed, "killed the processes that a worker had started"
        );
    }
    if !escaped.is_empty() || !unseen.is_empty() {
        note!(
            output, WARN, %worker, pid, ?escaped, ?unseen,
            "cannot kill processes that a worker had started"
        );
    }
}
