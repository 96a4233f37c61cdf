//! The jobs of the cleaner: slow work that is not user code.

use std::sync::Arc;

use brigade_supervisor::WorkerProcess;
use brigade_sys::sync::Mutex;
use crossbeam_channel::{Receiver, Sender, unbounded};

use super::deferred::ToFree;

/// The job queue of the cleaner thread; `None` once the pool has ended.
pub(super) struct Cleaner(Mutex<Option<Sender<Job>>>);

/// A job of the cleaner.
pub(super) enum Job {
    /// Kills a stopped worker and the processes that it has started.
    Kill {
        process: Arc<WorkerProcess>,
        at_once: bool,
    },
    Free {
        to_free: Vec<ToFree>,
    },
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
    pub(super) fn push(&self, job: Job) -> Option<Job> {
        match &*self.0.lock() {
            Some(jobs) => jobs.send(job).err().map(|refused| refused.0),
            None => Some(job),
        }
    }

    pub(super) fn end(&self) {
        self.0.lock().take();
    }
}
