//! The jobs of the cleaner's thread.

pub mod thread;

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use brigade_sys::sync::Mutex;
use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::workers::worker_process::WorkerProcess;

/// Orders to the cleaner's thread; `None` once the pool has ended.
pub struct Cleaner(Mutex<Option<Sender<Job>>>);

/// The jobs of the cleaner's thread.
pub type Jobs = Receiver<Job>;

/// A job of the cleaner: slow work that is not user code.
pub enum Job {
    /// Kills a stopped worker and the processes that it has started.
    Kill {
        /// The worker.
        process: Arc<WorkerProcess>,
        /// Its death may be reported at once.
        at_once: bool,
    },
    /// Frees large memory.
    Free(Box<dyn Send>),
    /// Does work of the owner.
    Work(Box<dyn Any + Send>),
}

impl Cleaner {
    pub(crate) fn new() -> (Self, Jobs) {
        let (sender, jobs) = unbounded();
        (Self(Mutex::new(Some(sender))), jobs)
    }

    /// Frees memory later, on the cleaner's thread.
    pub fn free(&self, memory: Box<dyn Send>) {
        // If the thread has ended, so have all threads that could wait for this one, and it may
        // free the memory itself.
        drop(self.push(Job::Free(memory)));
    }

    /// Returns the job if the thread has ended.
    pub(crate) fn push(&self, job: Job) -> Option<Job> {
        match &*self.0.lock() {
            Some(jobs) => jobs.send(job).err().map(|refused| refused.0),
            None => Some(job),
        }
    }

    pub(crate) fn end(&self) {
        self.0.lock().take();
    }
}

/// Runs jobs until the pool ends. Kills come before all other jobs: deadlines depend on them.
fn run_all(jobs: &Jobs, mut run: impl FnMut(Job)) {
    let mut others = VecDeque::new();
    while let Some(job) = others.pop_front().or_else(|| jobs.recv().ok()) {
        let (kills, rest): (Vec<_>, Vec<_>) =
            jobs.try_iter().partition(|job| matches!(job, Job::Kill { .. }));
        others.extend(rest);
        kills.into_iter().chain([job]).for_each(&mut run);
    }
}

#[cfg(test)]
mod tests {
    use brigade_wire::WorkerId;

    use super::*;

    #[test]
    fn a_kill_does_not_wait_for_other_jobs_and_none_is_lost() {
        let (cleaner, jobs) = Cleaner::new();
        let kill = |slot| {
            let process = Arc::new(WorkerProcess::new(WorkerId { slot, generation: 0 }));
            assert!(cleaner.push(Job::Kill { process, at_once: true }).is_none());
        };
        cleaner.free(Box::new(()));
        cleaner.free(Box::new(()));
        kill(1);
        let mut done = Vec::new();
        run_all(&jobs, |job| match job {
            Job::Kill { process, .. } => done.push(process.worker().slot),
            Job::Free(_) | Job::Work(_) => {
                if done.len() == 1 {
                    kill(2);
                    cleaner.end();
                }
                done.push(0);
            }
        });
        assert_eq!(done, [1, 0, 2, 0]);
        assert!(cleaner.push(Job::Free(Box::new(()))).is_some());
    }
}
