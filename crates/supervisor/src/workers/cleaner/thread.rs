//! The thread for slow work that is not user code.
//!
//! It finds the processes that a worker has started before it kills the worker, and it returns
//! large memory to the system, so that deadlines do not have to wait for either. A worker is
//! stopped before it is handed to this thread, so its task no longer runs. The jobs are bounded: a
//! kill examines at most a few thousand processes, and a copy takes up to a tenth of a second.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use brigade_sys::catch_panic::catch_panic;
use brigade_sys::clock;
use brigade_sys::process::{Exit, Swept};

use crate::note;
use crate::workers::asked::Asked;
use crate::workers::cleaner::{Job, Jobs, run_all};
use crate::workers::supervised::Supervised;
use crate::workers::worker_process::{Killed, ProcessState, WorkerProcess};

/// The signal that ends a killed process.
const SIGKILL: i32 = 9;

/// Runs jobs until the pool ends.
pub fn run(owner: &impl Supervised, jobs: &Jobs) {
    run_all(jobs, |job| {
        // Nothing in a job is known to panic. If it does, the panic hook has reported it, and the
        // next job is not affected.
        let _ = catch_panic(|| do_job(owner, job));
    });
}

/// Kills a worker. With `at_once`, its death may be reported immediately, while the system is still
/// cleaning up the process.
pub fn kill(owner: &impl Supervised, process: &Arc<WorkerProcess>, at_once: bool) {
    match process.kill() {
        // The spawner may wait for a fork server for it.
        Ok(Killed::NotYet) => owner.supervisor().wake_spawner(),
        Ok(Killed::Sent) => after_kill(owner, process, at_once),
        Ok(Killed::Stopped) => kill_later(owner, process, at_once),
        Err(error) => owner.could_not_kill(process, error),
    }
}

/// A worker that is about to be killed has this long to say where it is. A handler takes a tenth of
/// a millisecond, if its processor is not busy.
const BEFORE_KILL: Duration = Duration::from_millis(5);

/// Kills a worker as [`kill`] does, after it was asked where it is.
pub fn kill_with_sample(owner: &impl Supervised, process: &Arc<WorkerProcess>, at_once: bool) {
    let reaper = &owner.supervisor().reaper;
    // Otherwise it is being started, is dead already, or nobody would receive its answer.
    let may_answer = process.state() == ProcessState::Connected && reaper.receives();
    match may_answer.then(|| process.ask_last()).flatten() {
        None => kill(owner, process, at_once),
        Some(request) => {
            process.samples().requests.lock().last = Some(request);
            let until = clock::now().saturating_add(BEFORE_KILL);
            let asked = Asked { process: Arc::clone(process), request, at_once, until };
            reaper.asked.lock().push(asked);
            reaper.wake();
        }
    }
}

/// Has work of the owner done on the cleaner's thread. See [`Supervised::work`].
pub fn work_later(owner: &impl Supervised, work: Box<dyn Any + Send>) {
    if let Some(job) = owner.supervisor().cleaner.push(Job::Work(work)) {
        do_job(owner, job);
    }
}

/// Kills a worker and the processes that it has started on the cleaner's thread, even if its death
/// was reported.
pub(crate) fn kill_later(owner: &impl Supervised, process: &Arc<WorkerProcess>, at_once: bool) {
    let job = Job::Kill { process: Arc::clone(process), at_once };
    if let Some(job) = owner.supervisor().cleaner.push(job) {
        do_job(owner, job);
    }
}

fn do_job(owner: &impl Supervised, job: Job) {
    match job {
        Job::Free(memory) => drop(memory),
        Job::Work(work) => owner.work(work),
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
        process.allow_early_report(Exit::Signal(SIGKILL));
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
