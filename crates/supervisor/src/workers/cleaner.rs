//! The jobs of the cleaner's thread.

pub mod thread;

use std::any::Any;
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
