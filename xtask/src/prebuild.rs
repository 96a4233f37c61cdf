//! Builds that later steps need, made while the tests run.
//!
//! Many tests wait, for servers and timers above all, so the tests alone leave a part of the
//! machine idle. The builds have the lowest priority, and their results do not count: a step that
//! needs one makes it again, which takes a moment if it was successful and shows what is wrong
//! otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::invocation::Invocation;

/// Builds under way. Dropping it waits for the current one and leaves out the others.
pub(crate) struct Prebuild {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Prebuild {
    pub(crate) fn start(builds: Vec<Invocation>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            for build in builds {
                if of_thread.load(Ordering::Relaxed) {
                    break;
                }
                build.run_behind_others();
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Prebuild {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic there concerns no step.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
